"""Tensors of a call are on one device, by index; numbers of the CPU may come along."""

import facula
import pytest

MIXED = {
    "add": lambda a, b: a + b,
    "in place": lambda a, b: a.add_(b),
    "out": lambda a, b: facula.add(a, a, out=b),
    "list": lambda a, b: facula.cat([a, b]),
    "product": lambda a, b: facula.mm(a, b),
}
MIXED = [pytest.param(f, id=name) for name, f in MIXED.items()]
TEXT = "Expected all tensors to be on the same device, but found at least two devices, "


def _ones(device):
    return facula.ones(2, 2, device=device)


@pytest.mark.parametrize("call", MIXED)
@pytest.mark.parametrize("other", ["toy:1", "cpu"])
def test_two_devices_raise(toy, call, other):
    a, b = _ones("toy:0"), _ones(other)
    with pytest.raises(RuntimeError, match=TEXT + f"toy:0 and {other}"):
        call(a, b)
    assert a.cpu().tolist() == b.cpu().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_numbers_of_the_cpu_come_along(toy):
    assert (_ones("toy:1") + facula.tensor(2.0)).cpu().tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_the_error_names_the_argument():
    with pytest.raises(RuntimeError, match=r"when checking argument for argument other in method"):
        facula.ones(2) + facula.ones(2, device="meta")
