"""DTensors of ranks that are processes: collectives, random numbers, a checkpoint."""

import facula
from distributed.ranks import outputs

PROGRAM = """
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.tensor import Shard, distribute_tensor, randn
mesh = init_device_mesh("cpu", (2,))
facula.manual_seed(0)
w = facula.nn.Parameter(randn(5, 3, device_mesh=mesh, placements=[Shard(0)]))
x = facula.nn.functional.dropout(randn(4, 3, device_mesh=mesh, placements=[Shard(1)]), 0.5)
(x @ w.t()).square().sum().backward()
path = os.path.join(sys.argv[3], f"part{rank}.pt")
facula.save({"w": w}, path)
again = facula.load(path)["w"]
assert type(again) is type(w) and again.placements == w.placements
print(w.grad.full_tensor().sum().item(), again.full_tensor().sum().item())
"""


def test_processes_agree_with_one(tmp_path):
    facula.manual_seed(0)
    w = facula.nn.Parameter(facula.randn(5, 3))
    x = facula.nn.functional.dropout(facula.randn(4, 3), 0.5)
    (x @ w.t()).square().sum().backward()
    for line in outputs(PROGRAM, 2, tmp_path):
        total, again = map(float, line.split())
        assert abs(total - w.grad.sum().item()) < 1e-3
        assert abs(again - w.sum().item()) < 1e-4
