"""What the reader knows of values, and of how attributes are found."""

from __future__ import annotations

import types
from collections import OrderedDict

import facula
from facula import _C
from facula.nn import Module, Parameter

_TENSORS = (facula.Tensor, Parameter)
_WORDS = (type(facula.float32), type(facula.strided), type(facula.preserve_format), facula.device)
SIMPLE = frozenset(
    (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, *_WORDS)
)
_MODULES = (types.ModuleType, _C._LazyModule)
_HEAP_TYPE = 1 << 9
OVERLOAD_PACKET = type(facula.ops.aten.add)
OVERLOAD = type(facula.ops.aten.add.Tensor)

# Facts about a tensor that follow from what programs check of their tensors.
TENSOR_FACTS = frozenset(
    "shape dtype device layout ndim itemsize nbytes requires_grad is_leaf is_cpu is_cuda is_meta "
    "is_sparse is_quantized is_nested is_mps is_mtia is_xla is_xpu".split()
)
_FROM_SHAPE = frozenset(("shape", "nbytes"))
# Properties that are operators, by what they give.
_TENSOR_VIEWS = frozenset("T mT H mH real imag data".split())


class Refused(Exception):
    """Something that a stored program could not stand for."""


class Missing(Refused):
    """An attribute that is not there, which is watched."""


def is_tensor(value):
    """Whether a value is a tensor of a class that overrides nothing; refuses other tensors."""
    if type(value) in _TENSORS:
        return True
    if isinstance(value, _C.TensorBase):
        raise Refused(f"there is a tensor of class {type(value).__name__}")
    return False


def is_simple(value, depth=0):
    """Whether a value is immutable and has no tensors in it."""
    kind = type(value)
    if kind in SIMPLE:
        return True
    if kind is slice:
        return all(is_simple(v) for v in (value.start, value.stop, value.step))
    return (
        kind in (tuple, facula.Size) and depth < 4 and all(is_simple(v, depth + 1) for v in value)
    )


def is_argument(value, depth=0):
    """Whether an operator may take a value: tensors, simple values, lists and tuples of them."""
    if is_simple(value) or is_tensor(value):
        return True
    if type(value) is slice:
        return all(is_argument(v) for v in (value.start, value.stop, value.step))
    return (
        type(value) in (list, tuple) and depth < 3 and all(is_argument(v, depth + 1) for v in value)
    )


def is_return_type(kind):
    """Whether a class is one of the named tuples that operators give."""
    return kind is _C._return_type(kind.__name__)


def look_up(cls, name):
    """What a class or its bases have under a name; None if there is nothing."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


# How an attribute is found; `read_attribute` gives one of these, or the function of a property.
VALUE, FACT, OPERATOR, METHOD = "value", "fact", "operator", "method"


def read_attribute(reader, owner, name):
    """Watch what the look-up of an attribute depends on.

    Returns:
        VALUE: an object from outside; FACT: a simple value; OPERATOR: tensors; METHOD: something
        to call; a function: the getter of a property, which will run.
    """
    kind = type(owner)
    if is_tensor(owner):
        return _of_tensor(reader, owner, name)
    if kind in _MODULES:
        return _of_module(reader, owner, name)
    if kind in _WORDS:
        return FACT
    if isinstance(owner, type):
        return _of_class(reader, owner, name)
    if kind is OVERLOAD_PACKET:
        if name.startswith("_") or reader.program.watch_attribute(owner, name):
            raise Refused(f"it reads {owner.__name__}.{name}")
        return METHOD
    if kind is super:
        return _of_super(reader, owner, name)
    if kind in (list, dict, tuple, str, facula.Size, OrderedDict, int, float):
        return METHOD
    if not kind.__flags__ & _HEAP_TYPE or isinstance(owner, tuple):
        return _of_named_tuple(kind, name)
    return _of_instance(reader, owner, name)


def _of_tensor(reader, owner, name):
    found = look_up(type(owner), name)
    reader.program.watch_name(type(owner), name)
    if reader.program.watch_attribute(owner, name):
        raise Refused(f"it reads an attribute {name} that a tensor was given")
    if isinstance(found, types.GetSetDescriptorType) or type(found).__name__ == "getset_descriptor":
        if name in TENSOR_FACTS:
            need_geometry(reader, owner, name in _FROM_SHAPE)
            return FACT
        if name in _TENSOR_VIEWS:
            return OPERATOR
        raise Refused(f"it reads Tensor.{name}")
    if found is None or isinstance(found, property):
        raise Refused(f"it reads Tensor.{name}")
    return METHOD


def need_geometry(reader, tensor, of_sizes=True):
    """Refuse a tensor of which a program could not tell in advance what Python asks."""
    if not reader.program.is_known(tensor):
        raise Refused("it looks at a tensor of unknown origin")
    if of_sizes and not reader.program.has_known_geometry(tensor):
        raise Refused("it looks at sizes that depend on data")


def _of_module(reader, owner, name):
    items = owner.__dict__
    if name not in items or name.startswith("__"):
        raise Refused(f"{owner.__name__}.{name} is not in the dict of the module")
    reader.program.watch_instance(owner)
    reader.program.watch_item(items, name)
    return VALUE


def _of_class(reader, owner, name):
    found = look_up(owner, name)
    plain = found is not None and (
        type(found) in SIMPLE or isinstance(found, (types.FunctionType, staticmethod))
    )
    if type(owner) is not type or not plain or name.startswith("__"):
        raise Refused(f"it reads {owner.__name__}.{name}")
    reader.program.watch_name(owner, name)
    return VALUE


def _of_named_tuple(kind, name):
    if is_return_type(kind) and not name.startswith("_"):
        return OPERATOR
    raise Refused(f"it reads {kind.__name__}.{name}")


def _of_instance(reader, owner, name):
    kind, program = type(owner), reader.program
    for special in ("__getattribute__", "__getattr__", "__dict__", name):
        program.watch_name(kind, special)
    if look_up(kind, "__getattribute__") is not object.__getattribute__:
        raise Refused(f"{kind.__name__} has a __getattribute__")
    own_dict = isinstance(look_up(kind, "__dict__"), types.GetSetDescriptorType)
    if not own_dict or (name.startswith("__") and name != "__dict__"):
        raise Refused(f"it reads {kind.__name__}.{name}")
    program.watch_instance(owner)
    if name == "__dict__":
        return VALUE
    found = look_up(kind, name)
    if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
        return found.fget
    if hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"):
        raise Refused(f"{kind.__name__}.{name} is a descriptor")
    items = owner.__dict__
    program.watch_item(items, name)
    if name in items:
        return VALUE
    if found is not None:
        return _of_its_class(kind, name, found)
    return _registered(reader, owner, items, name)


def _of_its_class(kind, name, found):
    if isinstance(found, types.FunctionType):
        return METHOD
    if isinstance(found, staticmethod) or not hasattr(type(found), "__get__"):
        return VALUE
    raise Refused(f"{kind.__name__}.{name} is a {type(found).__name__}")


def _registered(reader, owner, items, name):
    """A parameter, submodule or buffer, which Module.__getattr__ looks up."""
    kind = type(owner)
    found = look_up(kind, "__getattr__")
    if found is None:
        raise Missing(f"{kind.__name__} has no attribute {name}")
    if found is not Module.__dict__["__getattr__"]:
        raise Refused(f"{kind.__name__}.{name} is found by a __getattr__")
    for table in ("_parameters", "_modules", "_buffers"):
        reader.program.watch_item(items, table)
        registered = items.get(table)
        if type(registered) not in (dict, OrderedDict):
            raise Refused(f"{kind.__name__}.{table} is no dict")
        reader.program.watch_item(registered, name)
        if name in registered:
            return VALUE
    raise Missing(f"{kind.__name__} has no attribute {name}")


def _of_super(reader, owner, name):
    """A method that is looked up in the classes after one of them."""
    classes = owner.__self_class__.__mro__
    reader.program.watch_instance(owner.__self__)
    reader.program.watch_own_name(owner.__self_class__, name)  # and its bases
    for cls in classes[classes.index(owner.__thisclass__) + 1 :]:
        reader.program.watch_own_name(cls, name)
        if name in cls.__dict__:
            if isinstance(cls.__dict__[name], types.FunctionType):
                return METHOD
            break
    raise Refused(f"it reads super().{name}")


def read_truth(reader, value):
    """Watch what the truth of a value depends on."""
    kind = type(value)
    if is_tensor(value):
        raise Refused("what it does depends on the value of a tensor")
    if is_simple(value) or kind in (list, types.FunctionType, types.MethodType):
        return
    if kind is dict:
        if not reader.is_own(value):
            reader.program.watch_dict(value)
        return
    if not kind.__flags__ & _HEAP_TYPE:
        raise Refused(f"it asks for the truth of a {kind.__name__}")
    for name in ("__bool__", "__len__"):
        if look_up(kind, name) is not None:
            raise Refused(f"it asks for the truth of a {kind.__name__}")
        reader.program.watch_name(kind, name)
    reader.program.watch_instance(value)
