"""facula.utils.data against torch.utils.data: the same order for the same seed."""

import pytest

torch = pytest.importorskip("torch")
facula = pytest.importorskip("facula")
from facula.utils import data as our_data  # noqa: E402
from torch.utils import data as their_data  # noqa: E402

LOADERS = {
    "shuffled": lambda d, s: {"shuffle": True, "batch_size": 4},
    "drop_last": lambda d, s: {"batch_size": 5, "drop_last": True},
    "single": lambda d, s: {"batch_size": None},
    "weighted": lambda d, s: {"sampler": d.WeightedRandomSampler([1.0] * 23, 40)},
    "subset": lambda d, s: {"sampler": d.SubsetRandomSampler(range(5, 15)), "batch_size": 3},
    "replaced": lambda d, s: {"sampler": d.RandomSampler(s, True, 50), "batch_size": 7},
    "repeated": lambda d, s: {"sampler": d.RandomSampler(s, num_samples=50), "batch_size": 7},
}


def _run(lib, data, name):
    lib.manual_seed(3)
    source = data.TensorDataset(lib.arange(23), lib.arange(23) * 2.0)
    parts = data.random_split(source, [15, 8]) + data.random_split(source, [0.5, 0.5])
    loader = data.DataLoader(source, **LOADERS[name](data, source))
    rows = [[[t.tolist() for t in batch] for batch in loader] for _ in range(2)]
    return [list(p.indices) for p in parts], rows, lib.rand(1).item(), len(loader)


@pytest.mark.parametrize("name", LOADERS)
def test_order_agrees(name):
    assert _run(facula, our_data, name) == _run(torch, their_data, name)


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        [1.0, 2.0],
        [{"a": 1, "b": [1, 2]}] * 2,
        [(1, "x")] * 3,
        [True, False],
        [[1, (2.0, 3)]],
    ],
)
def test_collate_agrees(batch):
    wanted = repr(their_data.default_collate(batch)).replace("torch.", "facula.")
    assert repr(our_data.default_collate(batch)) == wanted
