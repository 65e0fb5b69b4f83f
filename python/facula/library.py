"""Operators of one's own, and kernels for existing ones."""
from __future__ import annotations

import weakref

from facula import _C

__all__ = ["Library", "define", "impl", "custom_op", "register_fake", "register_kernel",
           "register_autograd", "fallthrough_kernel"]


def fallthrough_kernel():
    """Stands for passing a call on; registering it is not supported."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _split(name):
    namespace, _, rest = name.partition("::")
    name, _, overload = rest.partition(".")
    return namespace, name, "" if overload == "default" else overload


def _full_name(namespace, op):
    """(namespace, name, overload) of an OpOverload or a text without the namespace."""
    text = op.name() if isinstance(op, _C.OpOverload) else op
    return _split(text if "::" in text else f"{namespace}::{text}")


class Library:
    """Definitions and kernels in a namespace, taken out when the object dies.

    Args:
        ns (str): the namespace.
        kind (str): "DEF", "FRAGMENT" (both define), or "IMPL".
        dispatch_key (str): the default key of `impl`.

    Example:
        >>> lib = facula.library.Library("mine", "DEF")
        >>> op = lib.define("twice(Tensor x) -> Tensor")
        >>> lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._registrations = []
        self._finalizer = weakref.finalize(self, _take_out, self._registrations)
        self._finalizer.atexit = False

    def define(self, schema, alias_analysis="", *, tags=()):
        """Define an operator by its schema without the namespace; returns its name."""
        if self.kind == "IMPL":
            raise RuntimeError("define(): a library of kind IMPL defines no operators")
        return _C._library_define(f"{self.ns}::{schema.strip()}").name()

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Put in a kernel for a dispatch key ("CPU", "Meta", "Autograd", ...)."""
        if with_keyset:
            raise NotImplementedError("impl(): with_keyset=True is not supported")
        if not callable(fn):
            raise TypeError(
                f"infer_schema(): expected a callable; got {type(fn).__name__}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = _full_name(self.ns, op_name)
        self._registrations.append(_C._library_impl(*name, fn, key))

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Not supported: raises NotImplementedError."""
        raise NotImplementedError("Library.fallback() is not supported")

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        self.impl(op_name, fn, "Meta")

    def _destroy(self):
        self._finalizer()


def _take_out(registrations):
    for number in registrations:
        _C._library_remove(number)
    registrations.clear()


_kept = {}


def _library_of(namespace, lib):
    if lib is not None:
        return lib
    if namespace not in _kept:
        _kept[namespace] = Library(namespace, "FRAGMENT")
    return _kept[namespace]


def define(qualname, schema, *, lib=None, tags=()):
    """Define an operator: `define("mine::twice", "(Tensor x) -> Tensor")`."""
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(): qualname must be a str; got {type(qualname).__name__}")
    namespace, name, overload = _split(qualname)
    _library_of(namespace, lib).define(f"{name}{'.' if overload else ''}{overload}{schema}")


_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "default": "CompositeExplicitAutograd"}


def _keys(types):
    types = [types] if isinstance(types, str) else types
    return [_KEYS.get(one, one) for one in types]


def impl(qualname, types, func=None, *, lib=None):
    """Put in a kernel for device types ("cpu", ["cpu", "cuda"], "default"); or decorate one."""
    def register(function):
        library = _library_of(_split(qualname)[0], lib)
        for key in _keys(types):
            library.impl(qualname, function, key)
        return function

    return register if func is None else register(func)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Put in a kernel for some device types (None: for all)."""
    name = op.name() if isinstance(op, _C.OpOverload) else getattr(op, "_qualname", op)
    return impl(name, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Put in the shape rule of an operator: runs on meta tensors."""
    name = op.name() if isinstance(op, _C.OpOverload) else getattr(op, "_qualname", op)
    return impl(name, "Meta", func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Put in the derivative of an operator.

    Args:
        op: "ns::name", an OpOverload or a custom operator.
        backward: called as backward(ctx, *gradients); returns the gradients of all arguments.
        setup_context: called as setup_context(ctx, inputs, output) after the forward.
    """
    from facula.autograd.function import Function
    name = op.name() if isinstance(op, _C.OpOverload) else getattr(op, "_qualname", op)
    namespace, short, overload = _split(name)
    overload_op = _C._overload(namespace, short, overload)
    if overload_op is None:
        raise RuntimeError(f"register_autograd(): there is no operator {name}")

    def forward(ctx, *args):
        output = overload_op(*args)
        if setup_context is not None:
            setup_context(ctx, args, output)
        return output

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    rule = type(f"{short}_", (Function,), methods)

    def autograd_kernel(*args, **kwargs):
        if kwargs:
            raise NotImplementedError(
                f"{name}(): keyword-only arguments with register_autograd are not supported")
        return rule.apply(*args)

    _library_of(namespace, lib).impl(name, autograd_kernel, "Autograd")


class CustomOpDef:
    """An operator made by `custom_op`; callable, with decorators that add rules."""

    def __init__(self, qualname, schema, function):
        self._qualname, self._init_fn = qualname, function
        self._namespace, self._name, _ = _split(qualname)
        define(qualname, schema)
        self._opoverload = _C._overload(self._namespace, self._name, "")

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        """Put in a kernel for some device types (None: for all)."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn, /):
        """Put in the shape rule."""
        return register_fake(self, fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        """Put in the derivative."""
        register_autograd(self, backward, setup_context=setup_context)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make an operator of a Python function; usable as a decorator.

    Args:
        name (str): "namespace::name".
        fn: the function; its annotations give the schema unless `schema` is given.
        mutates_args: names of the arguments that it writes, or ().
        device_types: kernels for these only; None: for all.
        schema (str): "(Tensor x) -> Tensor".

    Returns:
        CustomOpDef.
    """
    def make(function):
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        op = CustomOpDef(name, text, function)
        op.register_kernel(device_types, function)
        return op

    return make if fn is None else make(fn)


_TYPE_TEXTS = {int: "SymInt", float: "float", bool: "bool", str: "str"}


def _type_text(annotation):
    import types
    import typing

    import facula
    if annotation is facula.Tensor:
        return "Tensor"
    if annotation is facula.dtype:
        return "ScalarType"
    if annotation is facula.device:
        return "Device"
    if annotation in _TYPE_TEXTS:
        return _TYPE_TEXTS[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in args and len(args) == 2:
        return _type_text(next(arg for arg in args if arg is not type(None))) + "?"
    if origin in (list, tuple) or getattr(origin, "__name__", "") == "Sequence":
        return _type_text(args[0]) + "[]"
    raise ValueError(f"infer_schema(func): the annotation {annotation} has no schema type")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema text of a function with annotations: "(Tensor x, SymInt n=1) -> Tensor"."""
    import inspect
    import typing
    hints = typing.get_type_hints(prototype_function)
    parts, starred = [], False
    for name, parameter in inspect.signature(prototype_function).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if name not in hints:
            raise ValueError(
                f"infer_schema(): parameter {name} must be annotated with a type")
        text = _type_text(hints[name])
        if name in mutates_args:
            text = text.replace("Tensor", f"Tensor(a{len(parts)}!)", 1)
        part = f"{text} {name}"
        if parameter.default is not inspect.Parameter.empty:
            default = parameter.default
            part += f'="{default}"' if isinstance(default, str) else f"={default}"
        parts.append(part)
    returned = hints.get("return", None)
    if returned is None or returned is type(None):
        results = "()"
    elif typing.get_origin(returned) is tuple:
        results = "(" + ", ".join(_type_text(one) for one in typing.get_args(returned)) + ")"
    else:
        results = _type_text(returned)
    return f"({', '.join(parts)}) -> {results}"
