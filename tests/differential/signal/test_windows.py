"""Every window of facula.signal.windows beside PyTorch's, by length, kind and parameters."""

import facula
import pytest
import torch

CASES = [
    *[(name, {}) for name in torch.signal.windows.__all__ if name != "general_cosine"],
    ("exponential", {"tau": 3.1}),
    ("exponential", {"center": 1.3, "sym": False}),
    ("gaussian", {"std": 0.4}),
    ("kaiser", {"beta": 0.0}),
    ("kaiser", {"beta": 3}),
    ("general_hamming", {"alpha": 0.7}),
    ("general_cosine", {"a": [0.3, 0.2]}),
    ("general_cosine", {"a": (0.3, 0.4, 0.1, 0.2), "sym": False}),
]


@pytest.mark.parametrize("name, options", CASES)
def test_values(name, options):
    for sym in {options.get("sym", True), False}:
        for M in (0, 1, 2, 3, 4, 5, 17, 64, 300):
            given = {**options, "sym": sym}
            theirs = getattr(torch.signal.windows, name)(M, dtype=torch.float64, **given)
            ours = getattr(facula.signal.windows, name)(M, dtype=facula.float64, **given)
            assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-12, abs=1e-13), (M, sym)


def test_signatures():
    import inspect

    for name in torch.signal.windows.__all__:
        theirs = inspect.signature(getattr(torch.signal.windows, name)).parameters
        ours = inspect.signature(getattr(facula.signal.windows, name)).parameters
        assert [(p.name, p.kind) for p in ours.values()] == [
            (p.name, p.kind) for p in theirs.values()
        ]
