"""Which functions and classes a checkpoint may name when it is loaded with weights_only=True."""

import _codecs
from _pickle import UnpicklingError
from collections import Counter, OrderedDict

import facula

from . import _core, _rebuild

# These can never be allowed: they act on the machine.
BLOCKED_MODULES = frozenset({"sys", "os", "posix", "nt"})
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_BUILTINS = {
    "builtins.set": set,
    "builtins.bytearray": bytearray,
    "builtins.complex": complex,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": _codecs.encode,
}
# Class name in the file to the class in this package.


def _nested_tensor_class():
    from facula.nested._internal.nested_tensor import NestedTensor

    return NestedTensor


_CLASSES = {
    "torch.Tensor": lambda: facula.Tensor,
    "torch.Size": lambda: facula.Size,
    "torch.device": lambda: facula.device,
    "torch.nn.parameter.Parameter": lambda: facula.nn.parameter.Parameter,
    "torch.nested._internal.nested_tensor.NestedTensor": _nested_tensor_class,
}
_QSCHEMES = frozenset(
    {
        "torch.per_tensor_affine",
        "torch.per_channel_affine",
        "torch.per_tensor_symmetric",
        "torch.per_channel_symmetric",
        "torch.per_channel_affine_float_qparams",
    }
)
_user_globals = {}


def full_name(obj):
    """The name under which a checkpoint has `obj`, as `module.name`.

    Raises:
        AttributeError: it is no function or class, so no file can name it.
    """
    return f"{obj.__module__}.{getattr(obj, '__qualname__', None) or obj.__name__}"


def torch_name(name):
    """A name in this package as PyTorch's files have it; others are unchanged."""
    return "torch" + name[6:] if name == "facula" or name.startswith("facula.") else name


def facula_name(name):
    """A name in PyTorch as this package, by the name it was imported under, has it."""
    is_torch = name == "torch" or name.startswith("torch.")
    return facula.__name__ + name[5:] if is_torch else name


def add_safe_globals(safe_globals):
    """Allows functions and classes to be named by checkpoints loaded with weights_only=True.

    Args:
        safe_globals (list): functions and classes, or pairs of one and its name in the file.

    Example:
        >>> from fractions import Fraction
        >>> facula.serialization.add_safe_globals([Fraction])
    """
    _user_globals.update(dict.fromkeys(safe_globals))


def clear_safe_globals():
    """Takes back all that `add_safe_globals` allowed."""
    _user_globals.clear()


def get_safe_globals():
    """What `add_safe_globals` allowed so far; returns a list."""
    return list(_user_globals)


class safe_globals:
    """Context manager: allows functions and classes as `add_safe_globals` does, for its block."""

    def __init__(self, safe_globals):
        self._added = safe_globals

    def __enter__(self):
        self._before = get_safe_globals()
        add_safe_globals(self._added)

    def __exit__(self, *exception):
        clear_safe_globals()
        add_safe_globals(self._before)


def user_globals(more=()):
    """By name, what the user allowed, and `more`; a facula class also under its PyTorch name."""
    table = {}
    for entry in [*_user_globals, *more]:
        obj, name = entry if isinstance(entry, tuple) else (entry, full_name(entry))
        table[name] = table[torch_name(name)] = obj
    return table


def _own_global(name):
    """What this package means by `name`, or None. Imports nothing that the file chooses."""
    if name in _BUILTINS:
        return _BUILTINS[name]
    if name in _rebuild.FUNCTIONS:
        return _rebuild.FUNCTIONS[name]
    if name in _CLASSES:
        return _CLASSES[name]()
    last = name.rpartition(".")[2]
    if name == "torch." + last and last in _core.DTYPE_NAMES:
        return _core.dtype_named(last)
    if name in (f"torch.{last}", f"torch.cuda.{last}") and last in _core.STORAGE_DTYPES:
        return _core.StorageType(last)
    if name in ("torch.storage.UntypedStorage", "torch.storage.TypedStorage"):
        return _core.StorageType(last)
    return getattr(facula, last, None) if name in _QSCHEMES else None


def safe_global(module, name, user=None):
    """The function or class that a checkpoint names.

    Raises:
        UnpicklingError: the name is not allowed.
    """
    module = _OLD_MODULES.get(module, module)
    if module.partition(".")[0] in BLOCKED_MODULES:
        raise UnpicklingError(
            f"load(): {module}.{name} is of a module, {module}, that weights_only=True never takes "
            "from"
        )
    full = f"{module}.{name}"
    found = _own_global(torch_name(full))
    if found is not None:
        return found
    user = user_globals() if user is None else user
    if full in user:
        return user[full]
    shown = name if module == "builtins" else full
    raise UnpicklingError(
        f"Unsupported global: GLOBAL {shown}: weights_only=True takes known functions and classes "
        f"alone; if this one is safe, `facula.serialization.add_safe_globals([{shown}])` or "
        f"`safe_globals([{shown}])` allows it"
    )


def is_safe_global(module, name):
    """Whether a checkpoint may name this."""
    try:
        safe_global(module, name)
    except UnpicklingError:
        return False
    except NotImplementedError:
        return True
    return True
