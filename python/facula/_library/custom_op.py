"""Operators made of Python functions."""

from __future__ import annotations

import contextlib

from facula import _C
from facula._library.fake_context import shape_rule
from facula._library.schema_inference import infer_schema, split_name

_Tensor = _C.Tensor
_made = {}  # name -> CustomOpDef: a second definition takes the place of the first


def _library():
    from facula import library

    return library


def _storages(values):
    """Identities of the memory of all tensors in arguments or results."""
    found = set()
    for value in values if isinstance(values, (list, tuple)) else (values,):
        if isinstance(value, _Tensor):
            found.add(_storage(value))
        elif isinstance(value, (list, tuple)):
            found |= _storages(value)
    return found


def _storage(tensor):
    return tensor.untyped_storage()._cdata if tensor.numel() else id(tensor)


class CustomOpDef:
    """An operator made by `custom_op`; callable, with decorators that add rules."""

    def __init__(self, namespace, name, schema, fn, tags=None):
        self._namespace, self._name, self._init_fn = namespace, name, fn
        self._qualname = f"{namespace}::{name}"
        self._kernels, self._disabled, self._fake = {}, set(), None
        if self._qualname in _made:
            _made[self._qualname]._lib._destroy()
        _made[self._qualname] = self
        self._lib = _library().Library(namespace, "FRAGMENT")
        self._lib.define(f"{name}{schema}")
        self._opoverload = _C._overload(namespace, name, "")
        self._lib.impl(self._opoverload, self._run_fake, "Meta")

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    # --- kernels

    def _run_fake(self, *args, **kwargs):
        if self._fake is None:
            raise RuntimeError(
                f"There was no fake impl registered for {self!r}. This is necessary for "
                f"torch.compile/export/fx tracing to work. Please use "
                f"`{self._init_fn.__name__}.register_fake` to add an fake impl."
            )
        return self._fake(*args, **kwargs)

    def _checked(self, device_type, function):
        """The kernel, refusing results that share memory with arguments or each other."""

        def kernel(*args, **kwargs):
            off = device_type in self._disabled
            output = (self._init_fn if off else function)(*args, **kwargs)
            self._check_aliases(function, args, kwargs, output)
            return output

        return kernel

    def _check_aliases(self, function, args, kwargs, output):
        results = output if isinstance(output, (list, tuple)) else (output,)
        seen = _storages(args) | _storages(tuple(kwargs.values()))
        for result in results:
            mine = _storages(result)
            if mine & seen:
                raise RuntimeError(
                    f"{self._name} (with implementation in {function.__module__}): The output of "
                    "this custom operator (1) must not also be an input to this custom operator "
                    "and (2) may not alias any inputs to this custom operator or other returns. "
                    "Return a clone of it, or let the operator return nothing."
                )
            seen |= mine

    def register_kernel(self, device_types, fn=None, /):
        """Put in a kernel for some device types (None: for all); or decorate one.

        Raises:
            RuntimeError: no such device type.
        """
        names = (
            [device_types]
            if device_types is None or isinstance(device_types, str)
            else [*device_types]
        )
        keys = {name: _library()._key_of(name or "default") for name in names}

        def register(function):
            for device_type, key in keys.items():
                self._kernels[device_type] = function
                self._lib.impl(self._opoverload, self._checked(device_type, function), key)
            return function

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """Context manager: the kernel of a device type is off (the first function runs) or on."""
        before = device_type in self._disabled
        if device_type not in self._kernels:
            import warnings

            warnings.warn(
                f"no kernel of {self._qualname} was registered for {device_type}", stacklevel=3
            )
        self._switch(device_type, enabled)
        try:
            yield
        finally:
            self._switch(device_type, not before)

    def _switch(self, device_type, enabled):
        (self._disabled.discard if enabled else self._disabled.add)(device_type)

    # --- rules

    def register_fake(self, fn, /):
        """Put in the shape rule."""
        self._fake = shape_rule(fn)
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """Put in the derivative; see `facula.library.register_autograd`."""
        _library()._check_functional(self._opoverload, self)
        _library().register_autograd(
            self._opoverload, backward, setup_context=setup_context, lib=self._lib
        )

    def register_vmap(self, func=None):
        """Put in the batching rule; see `facula.library.register_vmap`."""
        return _library().register_vmap(self._opoverload, func, lib=self._lib)

    def register_autocast(self, device_type, cast_inputs):
        """Cast inputs under autocast; see `facula.library.register_autocast`."""
        return _library().register_autocast(
            self._opoverload, device_type, cast_inputs, lib=self._lib
        )

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """Put in a rule of a subclass or mode; see `facula.library.register_torch_dispatch`."""
        return _library().register_torch_dispatch(
            self._opoverload, torch_dispatch_class, fn, lib=self._lib
        )


def _check_mutation(schema, written, mutates_args):
    expected = set(written) if mutates_args == "unknown" else set(mutates_args)
    if written != expected:
        raise ValueError(
            f"custom_op(): mutates_args must name what the schema marks as written, "
            f"{sorted(written)}; got {mutates_args} with {schema}"
        )


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make an operator of a Python function; usable as a decorator.

    Its results must not share memory with its arguments.

    Args:
        name (str): "namespace::name".
        fn: the function; its annotations give the schema unless `schema` is given.
        mutates_args: names of the arguments that it writes, (), or "unknown".
        device_types: kernels for these only, a name or several; None: for all.
        schema (str): "(Tensor x) -> Tensor".
        tags: kept by PyTorch for its compiler; not looked at.

    Returns:
        CustomOpDef.

    Raises:
        ValueError: annotations that no schema can say, a name without a namespace, a schema that
            writes other arguments than `mutates_args` names.

    Example:
        >>> @facula.library.custom_op("mine::twice", mutates_args=())
        ... def twice(x: facula.Tensor) -> facula.Tensor:
        ...     return x * 2
    """

    def make(function):
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        namespace, short, overload = split_name(name)
        if overload:
            raise ValueError(f"custom_op(): expected a name without an overload; got {name}")
        op = CustomOpDef(namespace, short, text, function, tags)
        if schema is not None:
            written = {a.name for a in op._opoverload._schema.arguments if a.is_write}
            try:
                _check_mutation(schema, written, mutates_args)
            except ValueError:
                op._lib._destroy()
                raise
        op.register_kernel(device_types, function)
        return op

    return make if fn is None else make(fn)
