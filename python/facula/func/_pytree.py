"""Nested containers of leaves: flattening, and building the same nest of other leaves."""

from __future__ import annotations

from collections import OrderedDict


class TreeSpec:
    """The shape of a nest: a container type, what it needs to be made again, its children."""

    __slots__ = ("type", "context", "children", "num_leaves")

    def __init__(self, type_, context, children):
        self.type, self.context, self.children = type_, context, children
        self.num_leaves = 1 if type_ is None else sum(c.num_leaves for c in children)

    def __eq__(self, other):
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children == other.children
        )

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        context = list(self.context) if self.type is dict else self.context
        children = f",\n{' ' * (indent + 2)}".join(c.__repr__(indent + 2) for c in self.children)
        return f"TreeSpec({self.type.__name__}, {context}, [{children}])"


LEAF = TreeSpec(None, None, ())


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _open(value):
    """The type, context and children of a container; None for a leaf."""
    kind = type(value)
    if kind in (dict, OrderedDict):
        return kind, tuple(value), list(value.values())
    if kind in (list, tuple) or _is_namedtuple(value):
        return kind, None, list(value)
    return None


def tree_flatten(tree):
    """The leaves of a nest of lists, tuples, dicts and namedtuples, and its TreeSpec."""
    opened = _open(tree)
    if opened is None:
        return [tree], LEAF
    kind, context, children = opened
    leaves, specs = [], []
    for child in children:
        some, spec = tree_flatten(child)
        leaves += some
        specs.append(spec)
    return leaves, TreeSpec(kind, context, specs)


def tree_unflatten(leaves, spec):
    """The nest of this TreeSpec with these leaves."""
    leaves = list(leaves)
    if len(leaves) != spec.num_leaves:
        raise ValueError(f"tree_unflatten(): expected {spec.num_leaves} leaves; got {len(leaves)}")
    return _build(iter(leaves), spec)


def _build(leaves, spec):
    if spec.type is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec.children]
    if spec.context is not None:
        return spec.type(zip(spec.context, children, strict=False))
    return spec.type(*children) if hasattr(spec.type, "_fields") else spec.type(children)


def tree_map(function, tree):
    """The same nest with function applied to every leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(leaf) for leaf in leaves], spec)


def broadcast_to(tree, spec):
    """The leaves of `tree` repeated to fit `spec`, where a leaf may stand for a whole part.

    Returns:
        list of leaves, or None when the two do not fit together.
    """
    opened = None if tree is None or isinstance(tree, int) else _open(tree)
    if opened is None:
        return [tree] * spec.num_leaves
    kind, context, children = opened
    if spec.type is not kind or context != spec.context or len(children) != len(spec.children):
        return None
    parts = [
        broadcast_to(child, part) for child, part in zip(children, spec.children, strict=False)
    ]
    return None if any(p is None for p in parts) else [leaf for p in parts for leaf in p]
