"""Training on two ranks: losses, parameters and buffers are those of PyTorch's DDP."""

import subprocess
import sys

import pytest
from leaving_ranks import LEAVE

PROGRAM = """
import sys
which, meeting, rank, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), eval(sys.argv[4])
if which == "torch":
    import torch as package
    import torch.distributed as dist
else:
    import facula as package
    import facula.distributed as dist
nn = package.nn
dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
with package.no_grad():
    for i, p in enumerate(net.parameters()):
        values = package.arange(p.numel(), dtype=package.float32) * 0.7 + i
        p.copy_(values.sin().view(p.shape) * 0.5)
late, by_hand = options.pop("late", 0), options.pop("by_hand", False)
if late:
    named = list(net.named_parameters())
    options["delay_all_reduce_named_params"] = named[-late:]
    options["param_to_hook_all_reduce"] = named[0][1]
if options.pop("mesh", False):
    options["device_mesh"] = dist.device_mesh.init_device_mesh("cpu", (2,))
ddp = nn.parallel.DistributedDataParallel(net, **options)
ddp.require_manual_backward_finalization = by_hand
optimizer = package.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
inputs = (package.arange(64, dtype=package.float32) * 1.3).cos().view(16, 4)
targets = package.arange(16) % 3
mine = slice(rank * 8, rank * 8 + 8)
for _ in range(6):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(ddp(inputs[mine]), targets[mine])
    loss.backward()
    if by_hand:
        ddp.finalize_backward()
    dist.barrier()  # PyTorch leaves the delayed call under way
    optimizer.step()
    print(loss.item())
for tensor in ddp.state_dict().values():
    print(*tensor.flatten().tolist())
"""


def curve(which, options, folder):
    meeting = f"file://{folder}/{which}"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM + LEAVE, which, meeting, str(rank), repr(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    found = [rank.communicate(timeout=300) for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), found
    return [[float(number) for number in out.split()] for out, _ in found]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket_cap_mb": 1e-5, "gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"late": 2},
        {"by_hand": True},
        {"mesh": True},
    ],
)
def test_curves(options, tmp_path):
    expected, found = curve("torch", options, tmp_path), curve("facula", options, tmp_path)
    for theirs, ours in zip(expected, found, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5)
