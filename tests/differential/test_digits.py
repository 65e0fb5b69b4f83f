"""The digits example gives the same loss curve on facula and on PyTorch, from the same source."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("facula")

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "digits.py"


def load_example(framework):
    """The example's namespace with another framework in the place of facula."""
    text = SOURCE.read_text(encoding="utf-8")
    assert "\nimport facula\n" in text
    text = text.replace("\nimport facula\n", f"\nimport {framework} as facula\n")
    text = text.replace("\nfrom facula", f"\nfrom {framework}")
    for part in ("nn", "optim", "optim.lr_scheduler", "utils.data"):
        importlib.import_module(f"{framework}.{part}")
    namespace = {"__name__": f"digits_on_{framework}", "__file__": str(SOURCE)}
    exec(compile(text, str(SOURCE), "exec"), namespace)
    return namespace


@pytest.fixture(scope="module")
def examples():
    return {name: load_example(name) for name in ("facula", "torch")}


def test_data_are_equal(examples):
    ours, theirs = (e["load_digits"]() for e in (examples["facula"], examples["torch"]))
    for mine, other in zip(ours, theirs, strict=True):
        assert tuple(mine.shape) == tuple(other.shape)
        assert str(mine.dtype).split(".")[1] == str(other.dtype).split(".")[1]
        assert mine.tolist() == other.tolist()


def test_initial_weights_are_equal(examples):
    states = []
    for name in ("facula", "torch"):
        example = examples[name]
        example["facula"].manual_seed(3)
        states.append({k: v.tolist() for k, v in example["make_model"]().state_dict().items()})
    assert states[0] == states[1]


@pytest.mark.parametrize("seed", [0, 1])
def test_loss_curves_agree(examples, seed):
    """Equal to rounding at first, to 3 % after an epoch, to 8 % after three.

    The first Adam steps divide by the size of each gradient: where that is near eps = 1e-8, as for
    weights of inputs that are nearly always zero, its rounding (another order of summation in the
    matrix product) becomes 1e-5 of the weight, and the curves part from there.
    """
    ours = examples["facula"]["loss_curve"](epochs=3, seed=seed)
    theirs = examples["torch"]["loss_curve"](epochs=3, seed=seed)
    assert len(ours) == len(theirs) == 3 * 45
    for step, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        tolerance = min(2e-5 * 2000 ** (step / 45), 0.03 if step < 45 else 0.08)
        assert mine == pytest.approx(other, rel=tolerance, abs=1e-6), f"step {step}"
