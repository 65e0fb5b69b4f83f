"""The named tuples that operators with several results return."""

from facula import _C, _missing


def __getattr__(name):
    kind = None if name.startswith("__") else _C._return_type(name)
    if kind is None:
        raise _missing.attribute(__name__, name)
    globals()[name] = kind
    return kind
