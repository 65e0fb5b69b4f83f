"""func.rearrange in both libraries: shapes, values and classes of errors."""

import facula
import pytest
import torch

CASES = [
    ("a b c -> c b a", {}),
    ("a b c->c b a", {}),
    ("a b c -> (a b) c", {}),
    ("a b c -> (a b)c", {}),
    ("a b c -> (c b a)", {}),
    ("a b (c d) -> a b c d", {"c": 2}),
    ("a b (c d) -> a b c d", {}),
    ("a b (c d) -> a b c d", {"c": 3}),
    ("( a b ) c d -> a b c d", {"a": 2}),
    ("(a b) c d -> a b c d", {"a": 2, "b": 1}),
    ("(a b) c d -> a b c d", {"a": 2, "b": 2}),
    ("(a b) c d -> a b c d", {"a": 2.0}),
    ("a b c -> a b c", {"a": 2}),
    ("a b c -> a b c", {"a": 3}),
    ("a b c -> a b c", {"e": 2}),
    ("a ... -> ... a", {}),
    ("... -> ...", {}),
    ("... c -> c ...", {}),
    ("a ... -> (a ...)", {}),
    ("(... a) -> a ...", {}),
    ("a (...) -> a ...", {}),
    ("a ... ... -> a ...", {}),
    ("a ... -> a", {}),
    ("a -> a ...", {}),
    ("... a b c -> a b c", {}),
    ("a b c -> a b c 1", {}),
    ("a b c -> () a b c", {}),
    ("a 2 c -> a c", {}),
    ("a 1 c -> a c", {}),
    ("a () c -> c a", {"a": 2}),
    ("1 1 c -> c", {}),
    ("1 ... -> ...", {}),
    ("... 1 -> ...", {}),
    ("a 1 c -> (a 1) c", {}),
    ("a (1 b) c -> a b c", {}),
    ("1 b -> b", {}),
    ("a b c d -> a b c d", {}),
    ("a b -> a b", {}),
    ("a b c -> a b", {}),
    ("a b c -> a b c d", {}),
    ("a a b -> a b", {}),
    ("a b c -> a a b c", {}),
    ("a b c", {}),
    ("a b c -> a b c -> a", {}),
    ("a (b c -> a", {}),
    ("a b) c -> a b c", {}),
    ("a (b (c)) d -> a", {}),
    ("a-b b c -> b c", {}),
    ("_a b c -> _a c b", {}),
    ("1a b c -> c b", {}),
]


def builtin_class(error):
    """The nearest built-in class of an exception."""
    return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


def outcome(lib, make, pattern, lengths):
    """Shape, strides and values, or the class of the error."""
    try:
        result = lib.func.rearrange(make(lib), pattern, **lengths)
    except Exception as error:
        return builtin_class(error)
    return tuple(result.shape), result.stride(), result.flatten().tolist()


@pytest.mark.parametrize(("pattern", "lengths"), CASES)
def test_same(pattern, lengths):
    ours, theirs = (
        outcome(lib, lambda lib: lib.arange(24).reshape(2, 3, 4), pattern, lengths)
        for lib in (facula, torch)
    )
    assert ours == theirs


@pytest.mark.parametrize("pattern", ["n a b -> a b n", "n a b -> (n a) b"])
def test_several_tensors(pattern):
    def make(lib):
        return [lib.arange(6).reshape(2, 3), lib.arange(6).reshape(2, 3) + 6]

    assert outcome(facula, make, pattern, {}) == outcome(torch, make, pattern, {})


def test_one_on_both_sides_is_a_dimension_of_size_one():
    """PyTorch fails on an inner assertion, whatever the size."""
    with pytest.raises(facula.func._rearrange.DimensionBindError, match="size 3"):
        facula.func.rearrange(facula.ones(2, 3), "a 1 -> 1 a")
    assert facula.func.rearrange(facula.ones(2, 1), "a 1 -> 1 a").shape == (1, 2)


def test_keywords_are_warned_of():
    for lib in (facula, torch):
        with pytest.warns(RuntimeWarning, match="keyword"):
            assert lib.func.rearrange(lib.ones(2, 3), "if b -> b if").shape == (3, 2)
