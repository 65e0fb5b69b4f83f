"""The table of rules: for each name of a function, what it does with tensors of a layout."""

from __future__ import annotations

import functools

import facula
from facula import _C

from .base import Nested

# What Tensor's own methods answer for the header of a nested tensor as well as for any other.
_OF_THE_HEADER = frozenset(
    (
        "dtype device requires_grad requires_grad_ is_leaf grad grad_fn retain_grad retains_grad "
        "register_hook register_post_accumulate_grad_hook backward is_floating_point is_complex "
        "is_signed element_size itemsize is_cpu is_cuda is_meta is_mps is_xpu is_sparse is_mkldnn "
        "is_quantized is_sparse_csr get_device __hash__ _version output_nr name names detach_ "
        "_backward_hooks is_inference _is_view is_neg is_conj volatile __dir__"
    ).split()
)


class Rules:
    """The rules of one layout.

    Args:
        layout (str): its name for error texts.
        elementwise (callable): what runs operators whose record says that they are elementwise; of
            name, function, args, kwargs.
    """

    def __init__(self, layout, elementwise):
        self.layout, self._elementwise = layout, elementwise
        self.table = {}

    def rule(self, names, holds):
        """A decorator that puts a rule into the table.

        Args:
            names (str): the functions' names, with spaces between them.
            holds (str): for which arguments the rule holds.

        Returns:
            callable
        """

        def enter(function):
            for name in names.split():
                self.table[name] = Rule(function, holds)
            return function

        return enter

    def run(self, func, args, kwargs):
        """What `__torch_function__` gives.

        Raises:
            NotImplementedError: there is no rule of this name.
        """
        name = _name_of(func)
        rule = self.table.get(name)
        with _C.DisableTorchFunctionSubclass():
            if rule is not None:
                return rule.function(func, *args, **kwargs)
            if name.rstrip("=") in _OF_THE_HEADER:
                return func(*args, **kwargs)
            if is_elementwise(name):
                return self._elementwise(name, func, args, kwargs)
        inner = getattr(func, "__wrapped__", None)
        if inner is None:
            raise self.missing(name)
        return inner(*args, **kwargs)  # written in Python, of functions that come here again

    def run_below_autograd(self, func, args, kwargs):
        """What `__torch_dispatch__` gives."""
        name = func._schema.name.partition("::")[2]
        rule = self.table.get(name) or self.table.get(name.lstrip("_"))
        if rule is not None:
            return rule.function(func, *args, **kwargs)
        if is_elementwise(name):
            return self._elementwise(name, func, args, kwargs)
        raise self.missing(name)

    def missing(self, name):
        """The error for a function that has no rule.

        Returns:
            NotImplementedError
        """
        return NotImplementedError(
            f"{name}(): there is no rule for nested tensors of layout {self.layout}; "
            f"unbind() gives their plain parts"
        )


class Rule:
    """One function's rule, and for which arguments it holds."""

    __slots__ = ("function", "holds")

    def __init__(self, function, holds):
        self.function, self.holds = function, holds


def _name_of(func):
    name = func.__name__
    if name == "__get__":
        return func.__self__.__name__
    if name in ("__set__", "__delete__"):
        return f"{func.__self__.__name__}="
    return name


@functools.lru_cache(None)
def is_elementwise(name):
    """Whether an operator's record says that it works on each element by itself.

    Args:
        name (str): like "add" or "add_".

    Returns:
        bool
    """
    if name.startswith("__"):
        name = name.strip("_")
        name = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}.get(name, name)
        name = name[1:] if name in ("radd", "rsub", "rmul", "rpow", "rdiv") else name
    packet = getattr(facula.ops.aten, name, None)
    if packet is None:
        return False
    return any("pointwise" in getattr(packet, one)._tags() for one in packet.overloads())


def nested_arguments(args, kwargs):
    """The nested tensors among arguments and in lists among them.

    Returns:
        list of Nested
    """
    found = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Nested):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(item for item in value if isinstance(item, Nested))
    return found


def mapped(value, change):
    """A result with `change` done to each tensor in it."""
    if isinstance(value, facula.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        items = [mapped(item, change) for item in value]
        return type(value)(items)
    return value
