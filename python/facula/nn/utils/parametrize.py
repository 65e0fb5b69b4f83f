"""Parametrizations: parameters and buffers that are computed from others at every use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy

import facula
from facula.nn.modules.container import ModuleDict, ModuleList
from facula.nn.parameter import Parameter

__all__ = [
    "cached",
    "ParametrizationList",
    "register_parametrization",
    "is_parametrized",
    "remove_parametrizations",
    "type_before_parametrizations",
    "transfer_parametrizations_and_params",
]

_cache_enabled = 0
_cache = {}


@contextmanager
def cached():
    """A context in which every parametrized tensor is computed at most once.

    Example:
        >>> with facula.nn.utils.parametrize.cached():
        ...     pass
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register_parameter_or_buffer(module, name, X):
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


def _maybe_set(dest, src):
    """Give `dest` the memory of `src`, and by the flag of `__future__` all else, too."""
    from facula.__future__ import get_swap_module_params_on_conversion
    from facula.utils import swap_tensors

    if not get_swap_module_params_on_conversion():
        dest.set_(src)
        return
    if isinstance(dest, Parameter) and not isinstance(src, Parameter):
        src = Parameter(src, requires_grad=dest.requires_grad)
    swap_tensors(dest, src)


def _check_like(what, got, like):
    """Raise ValueError where a result has another dtype or shape than the tensor it stands for."""
    if not isinstance(got, facula.Tensor):
        raise ValueError(f"{what} must return a Tensor; got {type(got).__name__}")
    for name in ("dtype", "shape"):
        if getattr(got, name) != getattr(like, name):
            raise ValueError(
                f"{what} must keep the {name} {getattr(like, name)} (unsafe=True allows others); "
                f"got {getattr(got, name)}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor in order, and the tensor (or tensors) behind them.

    Args:
        modules: sequence of Modules; their `right_inverse`, where they have one, finds the
            tensors behind from the last one to the first.
        original: the Parameter or buffer that is parametrized.
        unsafe: allow that dtype and shape change.

    Raises:
        ValueError: no modules, or results of another dtype or shape.
    """

    def __init__(self, modules, original, unsafe=False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList: modules must not be empty")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with facula.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    # One that is not implemented counts as the identity here.
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, facula.Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                "right_inverse() must return a Tensor or a sequence of Tensors; got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, facula.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_many(original, new)
        if not self.unsafe:
            self._check_result(shape, dtype)

    def _keep_one(self, original, new):
        if original.dtype != new.dtype:
            raise ValueError(
                f"right_inverse() must keep the dtype {original.dtype}; got {new.dtype}"
            )
        with facula.no_grad():
            _maybe_set(original, new)
        _register_parameter_or_buffer(self, "original", original)

    def _keep_many(self, original, new):
        for i, part in enumerate(new):
            if not isinstance(part, facula.Tensor):
                raise ValueError(
                    f"right_inverse() must return Tensors; got {type(part).__name__} at {i}"
                )
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            part.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", part)

    def _check_result(self, shape, dtype):
        result = self()
        like = facula.empty(shape, dtype=dtype, device="meta")
        _check_like("a parametrization", result, like)

    def right_inverse(self, value):
        """Set the tensors behind so that the parametrization gives `value`, where it can.

        Raises:
            RuntimeError: a parametrization without right_inverse.
            ValueError: it gives another number of tensors, another dtype or shape.
        """
        with facula.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"{type(module).__name__}: a parametrized tensor can be assigned only "
                        "where right_inverse() is defined"
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                _check_like("right_inverse()", value, self.original)
                _maybe_set(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(
                    f"right_inverse() must return a sequence; got {type(value).__name__}"
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    f"right_inverse() must return {self.ntensors} tensors; got {len(value)}"
                )
            for i, part in enumerate(value):
                target = getattr(self, f"original{i}")
                _check_like(f"right_inverse() at {i}", part, target)
                _maybe_set(target, part)

    def forward(self):
        """Compute the parametrized tensor."""
        modules = iter(self)
        if self.is_tensor:
            value = next(modules)(self.original)
        else:
            value = next(modules)(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in modules:
            value = module(value)
        return value


def _inject_new_class(module):
    """Give a module a class of its own, whose properties are its parametrized tensors."""
    cls = type(module)

    def refuse(self):
        raise RuntimeError(
            "parametrized modules cannot be pickled; save their state_dict() instead"
        )

    namespace = {"__getstate__": refuse}
    if not hasattr(cls, "__deepcopy__"):
        # A copy by pickling is refused, so the class needs a way of its own.
        namespace["__deepcopy__"] = _deepcopy_module
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), namespace)


def _deepcopy_module(self, memo):
    known = memo.get(id(self))
    if known is not None:
        return known
    copy = memo[id(self)] = self.__new__(type(self))
    copy.__dict__ = deepcopy(self.__dict__, memo)
    return copy


def _inject_property(module, tensor_name):
    def compute(self):
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def assign(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(compute, assign))


def _check_further(module, tensor_name, parametrization):
    """Check what a further parametrization makes of a parametrized tensor."""
    value = getattr(module, tensor_name)
    _check_like("a parametrization", parametrization(value), value)
    if not hasattr(parametrization, "right_inverse"):
        return
    with facula.no_grad():
        _check_like("right_inverse()", parametrization.right_inverse(parametrization(value)), value)


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Compute a parameter or buffer by a module from now on.

    Args:
        module: the Module that has the tensor.
        tensor_name: its name there.
        parametrization: Module from the tensor behind to the tensor that users see. With a
            method `right_inverse` the present value is kept, and values can be assigned.
        unsafe: allow that dtype and shape change.

    Returns:
        `module`.

    Raises:
        ValueError: no such tensor, or results of another dtype or shape.

    Example:
        >>> class Symmetric(facula.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        >>> layer = facula.nn.Linear(3, 3)
        >>> _ = facula.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.T).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        entries = module.parametrizations[tensor_name]
        entries.append(parametrization)
        entries.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        entries = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = entries
    else:
        raise ValueError(
            f"{type(module).__name__}: tensor_name must be that of a parameter, a buffer or a "
            f"parametrized tensor; got {tensor_name!r}"
        )
    return module


def is_parametrized(module, tensor_name=None):
    """Whether `module` has parametrized tensors, or the one of this name; returns a bool."""
    entries = getattr(module, "parametrizations", None)
    if not isinstance(entries, ModuleDict):
        return False
    return len(entries) > 0 if tensor_name is None else tensor_name in entries


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make a parametrized tensor a plain parameter or buffer again.

    Args:
        module: the Module. tensor_name: the tensor's name.
        leave_parametrized: keep the value that the parametrization gives; else that behind it.

    Returns:
        `module`.

    Raises:
        ValueError: no such parametrization, or several tensors behind one that shall be left.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"{type(module).__name__}: tensor_name must be that of a parametrized tensor; got "
            f"{tensor_name!r}"
        )
    entries = module.parametrizations[tensor_name]
    if entries.is_tensor:
        original = entries.original
        if leave_parametrized:
            _take_value(original, getattr(module, tensor_name), entries.unsafe)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "remove_parametrizations(): leave_parametrized=False needs one tensor behind the "
            f"parametrization; got {entries.ntensors}"
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def _take_value(original, value, unsafe):
    with facula.no_grad():
        try:
            _maybe_set(original, value.detach())
        except RuntimeError as error:
            if not unsafe:
                raise
            raise RuntimeError(
                "remove_parametrizations(): a parametrization registered as unsafe gives "
                "another dtype than the tensor behind it has; leave_parametrized=False "
                "restores that"
            ) from error


def type_before_parametrizations(module):
    """The class that `module` had before its tensors were parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Copy parametrizations with the tensors behind them to another module.

    Args:
        from_module, to_module: Modules.
        tensor_name: of the tensor to copy; all parametrized ones when None.

    Returns:
        `to_module`.
    """
    if not is_parametrized(from_module):
        return to_module
    entries = from_module.parametrizations
    for name in entries if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in entries[name]:
            copied = deepcopy(parametrization)
            register_parametrization(to_module, name, copied, unsafe=entries[name].unsafe)
        theirs, ours = to_module.parametrizations[name], entries[name]
        for key, value in ours.named_parameters(recurse=False):
            setattr(theirs, key, Parameter(value.detach().clone(), value.requires_grad))
        for key, value in ours.named_buffers(recurse=False):
            setattr(theirs, key, value.detach().clone())
    return to_module
