"""The arguments of `Module.to`."""

from __future__ import annotations

import facula

_EXPECTED = (
    "to() received an invalid combination of arguments - got ({got}), but expected one of:\n"
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, "
    "bool copy = False, *, torch.memory_format memory_format = None)\n"
    " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
)
_FORMS = (
    ("device", "dtype", "non_blocking", "copy"),
    ("dtype", "non_blocking", "copy"),
    ("tensor", "non_blocking", "copy"),
)
_TYPES = {
    "dtype": (facula.dtype,),
    "tensor": (facula.Tensor,),
    "non_blocking": (bool,),
    "copy": (bool,),
    "device": (facula.device, str, int),
    "memory_format": (facula.memory_format,),
}
_OPTIONAL = ("device", "dtype", "memory_format")


def _fits(name, value, form):
    if value is None:
        return name in _OPTIONAL and form[0] == "device" or name == "memory_format"
    if isinstance(value, bool) and name == "device":
        return False
    return isinstance(value, _TYPES[name])


def _match(form, args, kwargs):
    """The arguments by name when they fit `form`, else None."""
    if len(args) > len(form):
        return None
    given = dict(zip(form, args, strict=False))
    if given.keys() & kwargs.keys():
        return None
    given.update(kwargs)
    if form[0] != "device" and form[0] not in given:
        return None
    known = {*form, "memory_format"}
    if all(name in known and _fits(name, value, form) for name, value in given.items()):
        return given
    return None


def parse_to(*args, **kwargs):
    """Read the arguments of `to`; returns (device, dtype, non_blocking, memory_format).

    Raises:
        TypeError: arguments that fit none of the three forms.
    """
    for form in _FORMS:
        given = _match(form, args, kwargs)
        if given is None:
            continue
        device, dtype = given.get("device"), given.get("dtype")
        if "tensor" in given:
            device, dtype = given["tensor"].device, given["tensor"].dtype
        elif device is not None:
            device = facula.device(device)
        return device, dtype, given.get("non_blocking", False), given.get("memory_format")
    kinds = [type(a).__name__ for a in args] + [
        f"{name}={type(value).__name__}" for name, value in kwargs.items()
    ]
    raise TypeError(_EXPECTED.format(got=", ".join(kinds)))
