"""testing: the same verdicts and texts of assert_close, the same values of make_tensor."""

import pytest

torch = pytest.importorskip("torch")
facula = pytest.importorskip("facula")
from same_program import outcome  # noqa: E402

# Arguments of assert_close, in terms of T = tensor.
COMPARISONS = [
    "T([1.0, 2.0]), T([1.0, 2.5])",
    "T([1.0, 2.0]), T([1.0, 2.000001])",
    "T([1, 2]), T([1, 3])",
    "T([[1.0, 2.0], [3.0, 4.0]]), T([[1.0, 2.0], [3.5, 4.0]]), rtol=0, atol=0",
    "T(1.0), T(2.0)",
    "1.0, 2.0",
    "1, 2",
    "1 + 1j, 2.0 + 0j",
    "1, 1.0",
    "True, False",
    "None, None",
    "None, 1",
    "T([float('nan')]), T([float('nan')])",
    "T([float('nan')]), T([float('nan')]), equal_nan=True",
    "T([float('inf')]), T([1.0])",
    "T([True, False]), T([True, True])",
    "T([]), T([])",
    "T([1.0]), T([1.0], dtype=t.float64)",
    "T([1.0]), T([1.0], dtype=t.float64), check_dtype=False",
    "T([1.0]), T([1.0, 2.0])",
    "T([[1.0, 2.0]]).t(), T([[1.0], [2.0]]), check_stride=True",
    "[T(1.0), T(2.0)], [T(1.0), T(3.0)]",
    "{'a': [1.0]}, {'a': [2.0]}",
    "{'a': 1.0}, {'b': 1.0}",
    "[1], [1, 2]",
    "'a', 'b'",
    "T([1.0]), [1.0]",
    "T([1.0]), T([2.0]), rtol=1",
    "T([1.0]), T([2.0]), msg='mine'",
    "T([1.0]), T([2.0]), msg=lambda text: 'mine: ' + text",
    "T([1.0, 2.0], dtype=t.float16), T([1.0, 2.1], dtype=t.float16)",
    "T([1 + 1j]), T([1 + 2j])",
]
# Arguments of make_tensor.
MADE = [
    "4, dtype=t.float32",
    "(2, 3), dtype=t.float64, low=-1, high=1",
    "5, dtype=t.float16",
    "5, dtype=t.int64",
    "5, dtype=t.uint8",
    "5, dtype=t.bool",
    "3, dtype=t.complex64",
    "20, dtype=t.int8, low=-1, high=2, exclude_zero=True",
    "(3, 4), dtype=t.float32, noncontiguous=True",
    "(1, 2, 3, 4), dtype=t.float32, memory_format=t.channels_last",
    "2, dtype=t.float32, requires_grad=True",
    "2, dtype=t.float32, low=3, high=3",
    "2, dtype=t.int64, requires_grad=True",
]


@pytest.mark.parametrize("arguments", COMPARISONS)
def test_verdicts_and_texts_agree(arguments):
    def program(t):
        return eval(f"t.testing.assert_close({arguments})", {"t": t, "T": t.tensor})

    assert outcome(program, facula) == outcome(program, torch)


@pytest.mark.parametrize("arguments", MADE)
def test_made_values_agree(arguments):
    def program(t):
        t.manual_seed(3)
        made = eval(f"t.testing.make_tensor({arguments}, device='cpu')", {"t": t})
        return made.tolist(), made.stride(), str(made.dtype), made.requires_grad

    ours, theirs = outcome(program, facula), outcome(program, torch)
    assert ours.split(":")[0] == theirs.split(":")[0]
