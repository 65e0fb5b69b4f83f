"""The digits example gives the same loss curve on facula and on PyTorch, from the same source."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("facula")

SOURCE = Path(__file__).resolve().parents[3] / "examples" / "digits.py"


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


def in_double(example):
    """The example with weights and images of float64."""
    make_model, load_digits = example["make_model"], example["load_digits"]

    def load(*args):
        return tuple(t.double() if t.is_floating_point() else t for t in load_digits(*args))

    return {**example, "make_model": lambda: make_model().double(), "load_digits": load}


def curves(frameworks, seed):
    """The losses of three epochs, step by step, of facula and of PyTorch."""
    ours, theirs = (e["loss_curve"](epochs=3, seed=seed) for e in frameworks)
    assert len(ours) == len(theirs) == 3 * 45
    return zip(ours, theirs, strict=True)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_loss_curves_agree_to_the_rounding_of_float64(seed):
    frameworks = []
    for name in ("facula", "torch"):
        example = load_example(name)
        # The functions of the example see each other in its namespace.
        example.update(in_double(example))
        frameworks.append(example)
    for step, (mine, other) in enumerate(curves(frameworks, seed)):
        assert mine == pytest.approx(other, rel=1e-11), f"step {step}"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_loss_curves_agree_in_float32(examples, seed):
    """Equal to rounding for three steps, to 15 % to the end.

    The first Adam steps divide by the size of each gradient: where that is near eps = 1e-8, as for
    weights of inputs that are nearly always zero, its rounding (another order of summation in the
    matrix product) becomes 1e-5 of the weight, and the curves part from there. Each library's
    float32 curve parts from its own in float64 as far, for some seeds.
    """
    for step, (mine, other) in enumerate(curves(examples.values(), seed)):
        assert mine == pytest.approx(other, rel=1e-5 if step < 3 else 0.15), f"step {step}"
