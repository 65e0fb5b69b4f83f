"""Sharding rules choose the placements that PyTorch's do, of results and so of what moves."""

import itertools
import warnings

import facula
import facula.distributed.tensor
import pytest
import torch
import torch.distributed.tensor
from distributed.tensor.operator_cases import FOUR, ONE, TWO
from torch.testing._internal.distributed.fake_pg import FakeStore

# What PyTorch refuses or brings together, and we leave where it is (or the other way round).
OTHERWISE = {
    ("relu", "P(max)"),
    ("neg", "P(max)"),
    ("pad", "P(max)"),
    ("index", "S(0) R"),
    ("attention", "S(1) R"),
    ("attention", "S(3) R"),
    ("attention", "P(sum) R"),
    ("max_pool2d", "S(1) R"),
    ("embedding", "P(sum) R"),
    ("embedding", "P(sum) S(0)"),
    ("embedding", "P(sum) S(1)"),
    ("embedding", "P(sum) P(sum)"),
    ("gather", "S(0) S(0)"),
    ("gather", "S(1) S(0)"),
    ("gather", "R S(0)"),
    ("gather", "P(sum) S(0)"),
    ("cat", "S(1) P(sum)"),
    ("cat", "P(sum) S(1)"),
}


@pytest.fixture(scope="module", autouse=True)
def groups():
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    store = facula.distributed.HashStore()
    facula.distributed.init_process_group("fake", store=store, rank=0, world_size=2)
    yield
    torch.distributed.destroy_process_group()
    facula.distributed.destroy_process_group()


def placements_of(t, call, shape, placements):
    """The placements of what a call returns for tensors that lie so; of torch or facula."""
    tensor = t.distributed.tensor
    mesh = t.distributed.device_mesh.init_device_mesh("cpu", (2,))
    made = []
    for kind, argument in placements:
        local = list(shape)
        if kind == "Shard":
            local[argument] //= 2
        placement = getattr(tensor, kind)(*([] if argument is None else [argument]))
        made.append(tensor.DTensor.from_local(t.ones(local), mesh, [placement]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(t, *made)
        except Exception as error:
            return type(error).__name__
    results = result if isinstance(result, (list, tuple)) else [result]
    words = [str(r.placements[0]) if hasattr(r, "placements") else "" for r in results]
    return ["P(sum)" if w.startswith("MaskP") else w for w in words]


PLACEMENTS = {
    "S(0)": ("Shard", 0),
    "S(1)": ("Shard", 1),
    "S(2)": ("Shard", 2),
    "S(3)": ("Shard", 3),
    "R": ("Replicate", None),
    "P(sum)": ("Partial", "sum"),
    "P(avg)": ("Partial", "avg"),
    "P(max)": ("Partial", "max"),
}


def check(name, call, shape, combinations):
    for words in combinations:
        if (name, " ".join(words)) in OTHERWISE:
            continue
        wanted = [PLACEMENTS[w] for w in words]
        ours, theirs = (placements_of(t, call, shape, wanted) for t in (facula, torch))
        assert ours == theirs, f"{name} of {words}: {ours}, and {theirs} in PyTorch"


@pytest.mark.parametrize("name", ONE)
def test_one_tensor(name):
    words = ("S(0)", "S(1)", "R", "P(sum)", "P(avg)", "P(max)")
    check(name, ONE[name], (4, 4), [(w,) for w in words])


@pytest.mark.parametrize("name", TWO)
def test_two_tensors(name):
    words = ("S(0)", "S(1)", "R", "P(sum)")
    check(name, TWO[name], (4, 4), itertools.product(words, words))


# PyTorch's convolutions need whole images, and its causal attention a GPU.
@pytest.mark.parametrize("name", [n for n in FOUR if n not in ("conv2d", "causal attention")])
def test_four_dimensions(name):
    words = ("S(0)", "S(1)", "S(2)", "S(3)", "R", "P(sum)")
    check(name, FOUR[name], (2, 2, 4, 4), [(w, "R") for w in words])
