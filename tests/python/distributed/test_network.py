"""Gloo between machines whose network delays packets, loses them, or ends."""

import time

import network
import pytest
from facula._C import _distributed
from ranks import Ranks
from test_faults import LOOP
from test_gloo import PROGRAM

pytestmark = [
    pytest.mark.skipif(
        bool(_distributed.why_not("gloo")), reason="this build has no engine over Gloo"
    ),
    pytest.mark.skipif(bool(network.why_not()), reason=network.why_not()),
]


def ranks_in(net, program, folder):
    return Ranks(
        program,
        net.size,
        folder,
        prefix=net.prefix,
        FACULA_DISTRIBUTED_ENGINE="gloo",
        GLOO_SOCKET_IFNAME=net.interface,
    )


@pytest.mark.parametrize("delay, loss", [(0.002, 0), (0, 0.01)])
def test_collectives_pass_a_slow_and_a_lossy_network(tmp_path, delay, loss):
    with network.Network(2, delay, loss) as net:
        for code, out, err in ranks_in(net, PROGRAM, tmp_path).end(60):
            assert (code, out) == (0, "done\n"), err


def test_ranks_on_both_sides_of_a_cut_are_told(tmp_path):
    with network.Network(3) as net:
        ranks = ranks_in(net, LOOP, tmp_path)
        ranks.wait_ready()
        time.sleep(0.2)
        net.cut(2)
        cut = time.time()
        texts = [out for _, out, _ in ranks.end()]
    for rank, text in enumerate(texts):
        when, _, message = text.partition(" ")
        assert float(when) - cut < 3.5, texts
        lost = "rank 2 is lost" if rank < 2 else "is lost: it has given no sign of life"
        assert lost in message, texts


def test_a_short_pause_of_the_network_is_no_error(tmp_path):
    program = """
    x = facula.ones(4)
    for _ in range(20):
        dist.all_reduce(x, dist.ReduceOp.MAX)
        time.sleep(0.05)
    print(x[0].item())
    """
    with network.Network(2) as net:
        ranks = ranks_in(net, program, tmp_path)
        ranks.wait_ready()
        net.cut(1)
        time.sleep(0.5)
        net.mend()
        assert [(code, out) for code, out, _ in ranks.end()] == [(0, "1.0\n")] * 2
