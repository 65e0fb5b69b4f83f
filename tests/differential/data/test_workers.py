"""DataLoader with workers against PyTorch's: order, random numbers, errors."""

import random

import pytest

torch = pytest.importorskip("torch")
facula = pytest.importorskip("facula")
numpy = pytest.importorskip("numpy")
import facula.utils.data  # noqa: E402, F811
import torch.utils.data  # noqa: E402, F811

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def _draws(lib, info):
    return (
        info.id,
        info.num_workers,
        info.seed % 1000,
        random.random(),
        lib.rand(1).item(),
        float(numpy.random.rand()),
    )


def _map_dataset(lib):
    data = lib.utils.data

    class Draws(data.Dataset):
        def __len__(self):
            return 11

        def __getitem__(self, i):
            return i, lib.full((2,), i), *_draws(lib, data.get_worker_info())

    return Draws()


def _iterable_dataset(lib):
    data = lib.utils.data

    class Uneven(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            for i in range(info.id * 4, info.id * 9 + 1):
                yield i, *_draws(lib, info)

    return Uneven()


OPTIONS = {
    "two workers": {"batch_size": 2},
    "three shuffle": {"batch_size": 2, "shuffle": True, "num_workers": 3},
    "single items": {"batch_size": None},
    "deep prefetch": {"batch_size": 3, "prefetch_factor": 5},
    "drop last": {"batch_size": 3, "drop_last": True},
    "kept workers": {"batch_size": 2, "shuffle": True, "persistent_workers": True},
    "iterable": {"batch_size": 2, "num_workers": 3},
    "iterable, drop last": {"batch_size": 3, "drop_last": True, "num_workers": 3},
    "iterable, kept workers": {"batch_size": 2, "persistent_workers": True},
    "iterable, single items": {"batch_size": None},
}


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _run(lib, name):
    lib.manual_seed(7)
    dataset = (_iterable_dataset if name.startswith("iterable") else _map_dataset)(lib)
    options = {"num_workers": 2, "multiprocessing_context": "fork", **OPTIONS[name]}
    loader = lib.utils.data.DataLoader(dataset, **options)
    epochs = [[_plain(batch) for batch in loader] for _ in range(2)]
    return epochs, lib.rand(1).item()


@pytest.mark.parametrize("name", OPTIONS)
def test_batches_and_random_numbers_agree(name):
    assert _run(facula, name) == _run(torch, name)


def _failing(lib, kind):
    class Failing(lib.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            if kind is UnicodeDecodeError:
                return b"\xff".decode()
            raise kind("what is wrong")

    return Failing()


@pytest.mark.parametrize("kind", [ValueError, KeyError, UnicodeDecodeError])
def test_errors_of_workers_agree(kind):
    said = []
    for lib in (facula, torch):
        loader = lib.utils.data.DataLoader(
            _failing(lib, kind), num_workers=1, multiprocessing_context="fork"
        )
        with pytest.raises(Exception) as caught:
            list(loader)
        lines = str(caught.value).strip().splitlines()
        said.append((type(caught.value), lines[:2], lines[-1]))
    assert said[0] == said[1]


BAD = {
    "negative workers": {"num_workers": -1},
    "negative timeout": {"timeout": -1},
    "prefetch without workers": {"prefetch_factor": 2},
    "negative prefetch": {"prefetch_factor": -1, "num_workers": 1},
    "persistent without workers": {"persistent_workers": True},
    "context without workers": {"multiprocessing_context": "fork"},
    "unknown context": {"multiprocessing_context": "x", "num_workers": 1},
    "no context": {"multiprocessing_context": 3, "num_workers": 1},
}


@pytest.mark.parametrize("name", BAD)
def test_classes_of_option_errors_agree(name):
    kinds = []
    for lib in (facula, torch):
        with pytest.raises(Exception) as caught:
            lib.utils.data.DataLoader([1, 2], **BAD[name])
        kinds.append(type(caught.value))
    assert kinds[0] is kinds[1]


def test_numpy_seeds_agree():
    from facula.utils.data._utils.seeds import numpy_seed
    from torch.utils.data._utils.worker import _generate_state

    for seed, worker in ((0, 0), (12345, 3), (2**62 + 7, 11)):
        assert numpy_seed(seed, worker) == _generate_state(seed, worker)
