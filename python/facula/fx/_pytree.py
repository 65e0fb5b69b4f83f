"""Nested arguments that generated code takes apart: by the structure at tracing, not their own."""

from __future__ import annotations

from collections import namedtuple

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

SUPPORTED_NODES = {}


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """Say how values of a class are taken apart by a structure.

    Args:
        cls (type): the class.
        flatten_fn_spec (callable): of a value and its TreeSpec, the list of its children.
        flatten_fn_exact_match_spec (callable): of the same, whether value and structure agree.
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec, flatten_fn_exact_match_spec


def tree_flatten_spec(pytree_value, spec):
    """The leaves of a value at the places where a structure has leaves, as a list.

    Args:
        pytree_value: the value; where it is deeper than the structure, it stays whole.
        spec (TreeSpec): the structure.

    Raises:
        RuntimeError: a class that nobody registered.

    Example:
        >>> from facula.utils import _pytree
        >>> spec = _pytree.tree_structure({"a": 1, "b": [2, 3]})
        >>> tree_flatten_spec({"b": [20, (30,)], "a": 10}, spec)
        [10, 20, (30,)]
    """
    if spec.is_leaf():
        return [pytree_value]
    if spec.type not in SUPPORTED_NODES:
        raise RuntimeError(
            f"tree_flatten_spec(): {spec.type.__name__} must be registered; call "
            "register_pytree_flatten_spec"
        )
    children = SUPPORTED_NODES[spec.type][0](pytree_value, spec)
    leaves = []
    for child, part in zip(children, spec.children(), strict=False):
        leaves.extend(tree_flatten_spec(child, part))
    return leaves


def _in_order(value, spec):
    return [value[i] for i in range(spec.num_children)]


def _by_key(value, spec):
    return [value[key] for key in spec.context]


register_pytree_flatten_spec(dict, _by_key, lambda d, spec: list(d) == list(spec.context))
for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _in_order, lambda v, spec: len(v) == spec.num_children)
