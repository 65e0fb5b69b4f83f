"""Types on the signatures of modules and optimizers name what PyTorch's name."""

import inspect

import facula
import pytest
import torch

PAIRS = [
    (getattr(facula.nn, name), getattr(torch.nn, name))
    for name in dir(facula.nn)
    if inspect.isclass(getattr(facula.nn, name)) and hasattr(torch.nn, name)
] + [
    (getattr(facula.optim, name), getattr(torch.optim, name))
    for name in dir(facula.optim)
    if inspect.isclass(getattr(facula.optim, name)) and hasattr(torch.optim, name)
]


def _plain_types(cls):
    """Parameters of the constructor whose type is a plain Python one."""
    return {
        p.name: getattr(p.annotation, "__name__", p.annotation)
        for p in inspect.signature(cls.__init__).parameters.values()
        if getattr(p.annotation, "__name__", p.annotation) in ("int", "float", "bool", "str")
    }


@pytest.mark.parametrize("pair", PAIRS, ids=[ours.__name__ for ours, _ in PAIRS])
def test_plain_types_are_equal(pair):
    ours, theirs = map(_plain_types, pair)
    assert all(theirs[name] == kind for name, kind in ours.items() if name in theirs)
    assert ours or not theirs
