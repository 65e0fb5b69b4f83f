"""The named tuples that operators with several results return."""

from facula import _C, _missing


def _all():
    """The classes of all operators that return named results, sorted by name."""
    names = {fact["name"] for fact in _C._operator_table() if fact["name"][0] != "_"}
    names |= {f"{name}_out" for name in names}
    kinds = (_C._return_type(name) for name in sorted(names))
    return [kind for kind in kinds if kind is not None]


def pytree_register_structseq(cls):
    """Let pytrees go through tuples of a class of named results.

    Args:
        cls (type): a class of this module, or another that makes its objects of a sequence.

    Example:
        >>> from facula.utils import _pytree
        >>> class Pair(tuple):
        ...     pass
        >>> pytree_register_structseq(Pair)
        >>> _pytree.tree_leaves(Pair((1, 2)))
        [1, 2]
    """
    from facula.utils import _pytree

    def unflatten(fields, context):
        return cls(fields)

    _pytree._private_register_pytree_node(cls, lambda found: (list(found), None), unflatten)


def __getattr__(name):
    if name == "all_return_types":
        globals()[name] = _all()
        return globals()[name]
    kind = None if name.startswith("__") else _C._return_type(name)
    if kind is None:
        raise _missing.attribute(__name__, name)
    globals()[name] = kind
    return kind
