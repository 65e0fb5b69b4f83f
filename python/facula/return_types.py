"""The named tuples that operators with several results return."""

from facula import _C


def __getattr__(name):
    kind = None if name.startswith("__") else _C._return_type(name)
    if kind is None:
        raise AttributeError(f"module 'facula.return_types' has no attribute {name!r}")
    globals()[name] = kind
    return kind
