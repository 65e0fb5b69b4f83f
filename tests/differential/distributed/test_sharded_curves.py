"""Sharded training on two ranks: losses, shards, gradients and states are PyTorch's."""

import json
import subprocess
import sys

import pytest
from leaving_ranks import LEAVE

PROGRAM = """
import json, sys
which, meeting, rank, cases = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
if which == "torch":
    import torch as package
    import torch.distributed as dist
    from torch.distributed import fsdp
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
else:
    import facula as package
    import facula.distributed as dist
    from facula.distributed import fsdp
    from facula.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
nn = package.nn
dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))

def block(n):
    return nn.Sequential(nn.Linear(n, 7), nn.Tanh(), nn.Linear(7, n), nn.LayerNorm(n))

def run(case):
    found = {}
    net = nn.Sequential(nn.Linear(4, 5), block(5), block(5), nn.Linear(5, 3))
    with package.no_grad():
        for i, p in enumerate(net.parameters()):
            values = package.arange(p.numel(), dtype=package.float32) * 0.7 + i
            p.copy_(values.sin().view(p.shape) * 0.5)
    options, is_wrapper = {"mesh": mesh}, case.startswith("wrapper")
    if case == "bfloat16":
        options["mp_policy"] = fsdp.MixedPrecisionPolicy(
            package.bfloat16, package.float32)
    if case == "resharded":
        options["reshard_after_forward"] = True
    if case == "frozen":
        net[1][0].weight.requires_grad_(False)
    if case == "checkpointed":
        net[1], net[2] = checkpoint_wrapper(net[1]), checkpoint_wrapper(net[2])
    if is_wrapper:
        strategy = fsdp.ShardingStrategy[case.partition(" ")[2]]
        policy = lambda module, recurse, nonwrapped_numel: recurse or len([*module.children()]) == 4
        net = fsdp.FullyShardedDataParallel(
            net, auto_wrap_policy=policy, use_orig_params=True, sharding_strategy=strategy,
            device_id=package.device("cpu"))
    else:
        for part in (net[1], net[2]):
            fsdp.fully_shard(part, **options)
        fsdp.fully_shard(net, **options)
    optimizer = package.optim.AdamW(net.parameters(), lr=0.05)
    inputs = (package.arange(64, dtype=package.float32) * 1.3).cos().view(16, 4)
    targets = package.arange(16) % 3
    mine = slice(rank * 8, rank * 8 + 8)
    losses, norms = [], []
    for step in range(5):
        optimizer.zero_grad()
        if case == "accumulated":
            net.set_requires_gradient_sync(False)
            nn.functional.cross_entropy(net(inputs[mine].flip(0)), targets[mine]).backward()
            net.set_requires_gradient_sync(True)
        loss = nn.functional.cross_entropy(net(inputs[mine]).float(), targets[mine])
        loss.backward()
        if is_wrapper:
            norm = net.clip_grad_norm_(0.5)
        else:
            norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5).full_tensor()
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    found["losses"], found["norms"] = losses, norms
    state = net.state_dict()
    found["names"] = list(state)
    if not is_wrapper:
        found["places"] = [repr(t.placements) for t in state.values()]
        found["shards"] = [list(t.to_local().shape) for t in state.values()]
        found["grads"] = [
            None if p.grad is None else [repr(p.grad.placements), repr(p.grad.dtype).split(".")[1]]
            for p in net.parameters()]
        found["class"] = type(net).__name__, [b.__name__ for b in type(net).__mro__[1:3]]
        state = {k: t.full_tensor() for k, t in state.items()}
    found["values"] = [t.flatten().tolist() for t in state.values()]
    return found

print(json.dumps({case: run(case) for case in cases.split(",")}))
"""

CASES = [
    "plain",
    "bfloat16",
    "resharded",
    "frozen",
    "checkpointed",
    "accumulated",
    "wrapper FULL_SHARD",
    "wrapper SHARD_GRAD_OP",
    "wrapper NO_SHARD",
]


@pytest.fixture(scope="module", params=CASES)
def pair(request, runs):
    return request.param, *([rank[request.param] for rank in each] for each in runs)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What two ranks of PyTorch, and two of facula, found in all cases."""
    folder = tmp_path_factory.mktemp("stores")
    return [run(which, folder) for which in ("torch", "facula")]


def run(which, folder):
    meeting = f"file://{folder}/{which}"
    ranks = [
        subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-c", PROGRAM + LEAVE),
                *(which, meeting, str(rank), ",".join(CASES)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    found = [rank.communicate(timeout=200) for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), found
    return [json.loads(out.splitlines()[-1]) for out, _ in found]


def test_sharded_training(pair):
    case, expected, found = pair
    # Products of bfloat16 are rounded at other places.
    close = {"rel": 2e-2, "abs": 3e-2} if case == "bfloat16" else {"rel": 1e-4, "abs": 1e-5}
    for theirs, ours in zip(expected, found, strict=True):
        for key in ("losses", "norms"):
            assert ours.pop(key) == pytest.approx(theirs.pop(key), **close), key
        for a, b in zip(ours.pop("values"), theirs.pop("values"), strict=True):
            assert a == pytest.approx(b, **close)
        assert ours == theirs
