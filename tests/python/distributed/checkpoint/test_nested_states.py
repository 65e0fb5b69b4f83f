"""Nested states become flat ones, and come back."""

import facula
import pytest
from facula.distributed.checkpoint import _nested_dict

ONE = facula.ones(1)
CASES = {
    "dicts": ({"a": {"b": 1, 3: 2}}, {"a.b": ("a", "b"), "a.3": ("a", "3")}),
    "empty": ({"a": {}, "b": []}, {"b": ("b",)}),
    "plain lists": ({"a": [1, [2]], "t": (1, ONE)}, {"a": ("a",), "t": ("t",)}),
    "lists of tensors": ({"a": [1, ONE]}, {"a.0": ("a", 0), "a.1": ("a", 1)}),
    "lists of lists": ({"a": [[ONE], [2]]}, {"a.0.0": ("a", 0, 0), "a.1": ("a", 1)}),
    "lists of dicts": ({"a": [{"b": 1}]}, {"a.0.b": ("a", 0, "b")}),
}


@pytest.mark.parametrize("case", CASES)
def test_paths_are_pytorchs(case):
    nested, paths = CASES[case]
    assert _nested_dict.flatten_state_dict(nested)[1] == paths


def test_flat_states_become_nested_again():
    nested = {"a": {"b": 1, "c": [{"d": ONE}, {"e": 2}]}, "f": [1, 2]}
    assert _nested_dict.unflatten_state_dict(*_nested_dict.flatten_state_dict(nested)) == nested


def test_keys_that_are_no_texts_are_found():
    nested = {"state": {0: {"x": 1}}}
    _nested_dict.set_element(nested, ("state", "0", "x"), 5)
    assert nested == {"state": {0: {"x": 5}}}


def test_two_paths_with_one_key_are_refused():
    with pytest.raises(ValueError, match="both 'a.b'"):
        _nested_dict.flatten_state_dict({"a": {"b": 1}, "a.b": 2})
