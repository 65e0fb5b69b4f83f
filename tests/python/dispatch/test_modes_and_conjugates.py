"""Operators that consist of others give the same under a mode, with lazy conjugates too."""

import facula
import pytest
from facula.utils._python_dispatch import BaseTorchDispatchMode

CASES = {
    "vdot": lambda a: facula.vdot(a[0], a[1]),
    "pinv": facula.linalg.pinv,
    "adjoint": lambda a: a @ a.mH,
    "imaginary": lambda a: a.conj().imag * 2,
}


@pytest.mark.parametrize("name", CASES)
def test_conjugates_are_resolved_below_a_mode(name):
    a = facula.tensor([[1 + 2j, 3 - 1j, 0.5j], [2 - 1j, 1 + 1j, 4]])
    expected = CASES[name](a)
    with BaseTorchDispatchMode():
        result = CASES[name](a)
    assert facula.allclose(result, expected, rtol=1e-5, atol=1e-6)
