"""Text of tensors, checked against texts that are written down here."""

import math

import facula
import pytest
from facula._tensor_str import get_printoptions, printoptions, set_printoptions, tensor_repr


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


@pytest.mark.parametrize(
    "values, dtype, text",
    [
        ([1.0, 2.0], "float32", "tensor([1., 2.])"),
        ([1.0, 2.5], "float32", "tensor([1.0000, 2.5000])"),
        ([-0.0, 0.5], "float32", "tensor([-0.0000, 0.5000])"),
        ([1e10, 1.0], "float32", "tensor([1.0000e+10, 1.0000e+00])"),
        ([1e-5], "float32", "tensor([1.0000e-05])"),
        ([math.nan, math.inf, 1.0], "float32", "tensor([nan, inf, 1.])"),
        ([math.nan, -math.inf, 1.5], "float32", "tensor([   nan,   -inf, 1.5000])"),
        ([0.1], "float64", "tensor([0.1000], dtype=torch.float64)"),
        ([True, False], "bool", "tensor([ True, False])"),
        ([-5, 100], "int64", "tensor([ -5, 100])"),
        ([1, 2], "uint8", "tensor([1, 2], dtype=torch.uint8)"),
        ([], "float32", "tensor([])"),
        ([], "int64", "tensor([], dtype=torch.int64)"),
        (3.5, "float32", "tensor(3.5000)"),
        ([1.5 + 2j, 3], "complex64", "tensor([1.5000+2.j, 3.0000+0.j])"),
        ([[1.0], [-2.0]], "float32", "tensor([[ 1.],\n        [-2.]])"),
    ],
)
def test_text_of_values(values, dtype, text):
    t = facula.tensor(values, dtype=getattr(facula, dtype))
    assert tensor_repr(t) == text.replace("torch.", str(t.dtype).partition(".")[0] + ".")


def test_summary_keeps_the_ends():
    assert tensor_repr(facula.arange(2000)) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"


def test_suffixes():
    assert tensor_repr(facula.ones(2, requires_grad=True)) == "tensor([1., 1.], requires_grad=True)"
    assert tensor_repr(facula.empty(0, 3)) == "tensor([], size=(0, 3))"
    meta = facula.empty(2, 3, device="meta")
    assert tensor_repr(meta) == "tensor(..., device='meta', size=(2, 3))"
    assert tensor_repr(facula.ones(2), tensor_contents="abc") == "tensor(abc)"


def test_long_suffix_starts_a_line():
    t = facula.ones(18, requires_grad=True)
    assert tensor_repr(t).endswith("1.],\n       requires_grad=True)")


def test_options():
    t = facula.tensor([1.23456])
    with printoptions(precision=2):
        assert tensor_repr(t) == "tensor([1.23])"
    assert tensor_repr(t) == "tensor([1.2346])"
    set_printoptions(sci_mode=True)
    assert tensor_repr(t) == "tensor([1.2346e+00])"
    set_printoptions(profile="short")
    assert tensor_repr(t) == "tensor([1.23])"
    assert get_printoptions()["edgeitems"] == 2
    set_printoptions(profile="full")
    assert "..." not in tensor_repr(facula.arange(2000))


def test_named_results_take_a_line_for_each_field():
    found = facula.tensor([[1.0, 2.0]]).max(0)
    prefix = f"{facula.__name__}.return_types.max("
    assert repr(found) == f"{prefix}\nvalues=tensor([1., 2.]),\nindices=tensor([0, 0]))"
    assert str(found) == found.__repr__() == repr(found)
