"""Module: the base of every layer and model."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar

import facula
from facula._C import _look_up_here, _set_up_module
from facula._utils import CallSignature
from facula.nn.modules import _hooks
from facula.nn.modules._hooks import (  # noqa: F401  (public names of this module)
    HookMethods,
    _has_any_global_hook,
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from facula.nn.modules._state_dict import (  # noqa: F401
    _EXTRA_STATE_KEY_SUFFIX,
    StateDictMethods,
    _IncompatibleKeys,
)
from facula.nn.parameter import Buffer, Parameter
from facula.utils.hooks import RemovableHandle  # noqa: F401

T_destination = TypeVar("T_destination", bound=dict[str, Any])
_set = object.__setattr__
_global_tables = (
    _hooks._global_backward_pre_hooks,
    _hooks._global_backward_hooks,
    _hooks._global_forward_pre_hooks,
    _hooks._global_forward_hooks,
)
# Types that are never registered: assigning one needs no look at the value.
_PLAIN = frozenset({int, float, bool, str, tuple, list, dict, set})


def _forward_unimplemented(self, *input):
    """Override with the computation of the module."""
    raise NotImplementedError(f"{type(self).__name__}: forward() must be defined")


def _addindent(text, spaces):
    """Indent every line of `text` but the first; returns a str."""
    return text.replace("\n", "\n" + " " * spaces)


class Module(HookMethods, StateDictMethods):
    """Base class of layers and models: holds parameters, buffers and child modules.

    Subclasses assign Parameters and Modules to attributes in `__init__` (after
    `super().__init__()`) and define `forward`; calling the module calls `forward`.

    Example:
        >>> class Scale(facula.nn.Module):
        ...     def __init__(self, size):
        ...         super().__init__()
        ...         self.factor = facula.nn.Parameter(facula.ones(size))
        ...     def forward(self, x):
        ...         return x * self.factor
    """

    dump_patches = False
    T_destination = T_destination
    _version = 1
    call_super_init = False
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs) -> None:
        if not self.call_super_init:
            _check_no_arguments(args, kwargs)
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _look_up_here(cls)

    forward = _forward_unimplemented

    # ---- attributes

    # The binding does this lookup itself as long as no class overrides it (_look_up_here). Its
    # __call__ (_set_up_module) calls forward, or _call_impl where there are hooks.
    def __getattr__(self, name):
        # Before __init__ has run the tables are missing; then every name is unknown.
        for table in ("_parameters", "_modules", "_buffers"):
            found = self.__dict__.get(table, ())
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        d = self.__dict__
        if (
            type(value) in _PLAIN
            and "_modules" in d
            and not (name in d["_parameters"] or name in d["_modules"] or name in d["_buffers"])
        ):
            _set(self, name, value)
        else:
            self._assign(name, value)

    def _assign(self, name, value):
        """Assign to a registered name, or register a Parameter, Module or Buffer."""
        d = self.__dict__
        if isinstance(value, Parameter):
            self._require_init("_parameters", "parameters")
            self._drop(name, d, d["_buffers"], d["_modules"], d["_non_persistent_buffers_set"])
            self.register_parameter(name, value)
        elif name in d.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}': "
                    "expected a Parameter or None"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._require_init("_modules", "module")
            self._drop(name, d, d["_parameters"], d["_buffers"], d["_non_persistent_buffers_set"])
            d["_modules"][name] = self._registered(
                _hooks._global_module_registration_hooks, name, value
            )
        elif name in d.get("_modules", ()):
            self._replace_module(name, value)
        elif isinstance(value, Buffer) or name in d.get("_buffers", ()):
            self._assign_buffer(name, value)
        else:
            _set(self, name, value)

    def _replace_module(self, name, value):
        if value is not None:
            raise TypeError(
                f"cannot assign '{_typename(value)}' as child module '{name}': "
                "expected a Module or None"
            )
        hooks = _hooks._global_module_registration_hooks
        self._modules[name] = self._registered(hooks, name, value)

    def _assign_buffer(self, name, value):
        if value is not None and not isinstance(value, facula.Tensor):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}': expected a "
                "Tensor, a Buffer or None"
            )
        d = self.__dict__
        if not isinstance(value, Buffer):
            hooks = _hooks._global_buffer_registration_hooks
            d["_buffers"][name] = self._registered(hooks, name, value)
            return
        if "_buffers" in d:
            # Not out of the buffers: one that is replaced keeps its place in the state_dict.
            self._drop(name, d, d["_parameters"], d["_modules"])
        self.register_buffer(name, value, value.persistent)

    def _registered(self, hooks, name, value):
        """The value to register after the global registration hooks have seen it."""
        for hook in hooks.values():
            replaced = hook(self, name, value)
            if replaced is not None:
                value = replaced
        return value

    def _require_init(self, table, what):
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    @staticmethod
    def _drop(name, *tables):
        for table in tables:
            if name in table:
                table.discard(name) if isinstance(table, set) else table.pop(name)

    def __delattr__(self, name):
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = {
            *dir(type(self)),
            *self.__dict__,
            *self._parameters,
            *self._modules,
            *self._buffers,
        }
        return sorted(name for name in names if not name[0].isdigit())

    # ---- registration

    def _check_name(self, kind, name, table, show_name=False):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name must be a str; got {_typename(name)}")
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            got = f", got: {name}" if show_name else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f"{kind} name must not be empty")

    def register_parameter(self, name, param):
        """Add a parameter.

        Args:
            name: a str without dots, under which it is an attribute.
            param: a Parameter, or None for a parameter that is switched off.

        Raises:
            TypeError, KeyError: a bad name, or a value that is no Parameter.
            ValueError: a tensor that is the result of an operation.
        """
        self._require_init("_parameters", "parameter")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter(): '{name}' must be a Parameter or None; got "
                f"{_typename(param)}"
            )
        if param is not None and param.grad_fn:
            raise ValueError(
                f"parameter '{name}' must be a leaf; got a Tensor with a history, which forward() "
                "can compute instead"
            )
        if param is not None:
            hooks = _hooks._global_parameter_registration_hooks
            param = self._registered(hooks, name, param)
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Add a buffer: a tensor that is state but not trained.

        Args:
            name: a str without dots, under which it is an attribute.
            tensor: a Tensor or None.
            persistent: whether it is part of the state_dict.

        Raises:
            TypeError, KeyError: a bad name, or a value that is no Tensor.
        """
        self._require_init("_buffers", "buffer")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, facula.Tensor):
            raise TypeError(
                f"register_buffer(): '{name}' must be a Tensor or None; got {_typename(tensor)}"
            )
        hooks = _hooks._global_buffer_registration_hooks
        self._buffers[name] = self._registered(hooks, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Add a child module under `name` (a str without dots); None is allowed.

        Raises:
            TypeError, KeyError: a bad name, or a value that is no Module.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"add_module(): expected a Module or None; got {_typename(module)}")
        self._check_name("module", name, self._modules, show_name=True)
        hooks = _hooks._global_module_registration_hooks
        self._modules[name] = self._registered(hooks, name, module)

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    # ---- access by dotted name

    def get_submodule(self, target):
        """The descendant at dotted name `target`; itself for "". Raises AttributeError."""
        module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put `module` at dotted name `target`; with `strict` the name must exist.

        Raises:
            ValueError: an empty name, or a value that is no Module.
            AttributeError: the path does not exist or is no module.
        """
        if target == "":
            raise ValueError("set_submodule(): target must not be empty")
        if not isinstance(module, Module):
            raise ValueError(
                f"set_submodule(): module must be a Module; got {type(module).__name__}"
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_leaf(self, target):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target):
        """The parameter at dotted name `target`. Raises AttributeError."""
        _, name, value = self._get_leaf(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target):
        """The buffer at dotted name `target`. Raises AttributeError."""
        module, name, value = self._get_leaf(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    # ---- iteration

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (dotted name, Parameter)."""
        yield from self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse=True):
        """Iterate over the parameters, of the children too unless `recurse` is False."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (dotted name, buffer)."""
        yield from self._named_members(
            lambda m: m._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse=True):
        """Iterate over the buffers, of the children too unless `recurse` is False."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self):
        """Iterate over (name, child), each child once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """Iterate over the children, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Iterate over (dotted name, module): itself and all descendants."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate=True):
        """Iterate over itself and all descendants."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # ---- mode and gradients

    def train(self, mode=True):
        """Set training mode on this module and its descendants; returns self."""
        if not isinstance(mode, bool):
            raise ValueError(f"train(): mode must be a bool; got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode: `train(False)`; returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set requires_grad of every parameter; returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or zero them when `set_to_none` is False."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    def share_memory(self):
        """Move parameters and buffers to shared memory; returns self."""
        return self._apply(lambda t: t.share_memory_())

    # ---- conversion

    def apply(self, fn):
        """Call `fn` on every descendant and then on itself; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer by `fn` of it; returns self."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._parameters[name] = _apply_to_parameter(param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Move or convert parameters and buffers: `to(device)`, `to(dtype)`, `to(tensor)`.

        Only floating-point and complex tensors change dtype. Returns self.

        Raises:
            TypeError: a dtype that is neither floating-point nor complex.
        """
        from facula.nn.modules._to import parse_to

        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"Module.to(): dtype must be floating point or complex; got {dtype}")

        def convert(t):
            options = {"non_blocking": non_blocking}
            if memory_format is not None and t.dim() in (4, 5):
                options["memory_format"] = memory_format
            takes_dtype = t.is_floating_point() or t.is_complex()
            return t.to(device, dtype if takes_dtype else None, **options)

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Move parameters and buffers to `device` without their values; returns self."""
        return self._apply(lambda t: facula.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type):
        """Convert all parameters and buffers to `dst_type`; returns self."""
        return self._apply(lambda t: t.type(dst_type))

    def _apply_to_floating(self, method):
        return self._apply(lambda t: getattr(t, method)() if t.is_floating_point() else t)

    def float(self):
        """Convert floating-point parameters and buffers to float32; returns self."""
        return self._apply_to_floating("float")

    def double(self):
        """Convert floating-point parameters and buffers to float64; returns self."""
        return self._apply_to_floating("double")

    def half(self):
        """Convert floating-point parameters and buffers to float16; returns self."""
        return self._apply_to_floating("half")

    def bfloat16(self):
        """Convert floating-point parameters and buffers to bfloat16; returns self."""
        return self._apply_to_floating("bfloat16")

    def cpu(self):
        """Move parameters and buffers to the CPU; returns self."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Move parameters and buffers to a CUDA device; returns self."""
        return self._apply(lambda t: t.cuda(device))

    def _to_device_type(self, kind, device):
        device = facula.device(kind) if device is None else facula.device(kind, device)
        return self._apply(lambda t: t.to(device))

    def xpu(self, device=None):
        """Move parameters and buffers to a XPU device; returns self."""
        return self._to_device_type("xpu", device)

    def ipu(self, device=None):
        """Move parameters and buffers to an IPU device; returns self."""
        return self._to_device_type("ipu", device)

    def mtia(self, device=None):
        """Move parameters and buffers to a MTIA device; returns self."""
        return self._to_device_type("mtia", device)

    def compile(self, *args, **kwargs):
        """Compile the call of this module with `facula.compile`."""
        _set(self, "_compiled_call_impl", facula.compile(self._call_impl, *args, **kwargs))

    # ---- text, copies, pickles

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """Override to describe the module's settings in its repr; returns a str."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if not children and len(lines) == 1:
            return f"{self._get_name()}({extra})"
        if not children and not lines:
            return self._get_name() + "()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Pickles of old versions lack the tables that came later.
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            if name not in self.__dict__:
                self.__dict__[name] = OrderedDict()
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)


_set_up_module(Module, _global_tables)
Module.__signature__ = CallSignature("*args, **kwargs", of_instances=True, call=Module.__call__)
_look_up_here(Module)


def _look_up_here_again(cls=Module):
    """Undo what assigning another `__getattr__` to Module for a while did to all of its classes."""
    _look_up_here(cls)
    for derived in cls.__subclasses__():
        _look_up_here_again(derived)


def _check_no_arguments(args, kwargs):
    if kwargs:
        raise TypeError(
            f"Module.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
        )
    if args:
        raise TypeError(
            f"Module.__init__() takes 1 positional argument but {len(args) + 1} were given"
        )


def _typename(value):
    return facula.typename(value)


def _shares_data(old, new):
    """Whether `old.data = new` can take the place of a new Parameter."""
    return (
        old.layout == new.layout
        and old.is_meta == new.is_meta
        and type(new) in (type(old), facula.Tensor)
    )


def _keeps_object(old, new):
    """Whether conversion changes the data of a Parameter, and not the Parameter."""
    from facula.__future__ import get_overwrite_module_params_on_conversion

    return not get_overwrite_module_params_on_conversion() and _shares_data(old, new)


def _apply_to_parameter(param, fn):
    from facula.__future__ import get_swap_module_params_on_conversion
    from facula.utils._python_dispatch import is_traceable_wrapper_subclass

    with facula.no_grad():
        new = fn(param)
    # Wrappers hold tensors of their own, which `.data =` would leave as they are.
    if get_swap_module_params_on_conversion() or is_traceable_wrapper_subclass(new):
        return _swapped(param, new, fn)
    if _keeps_object(param, new):
        param.data = new
        result = param
    else:
        result = Parameter(new, param.requires_grad)
    grad = param.grad
    if grad is None:
        return result
    with facula.no_grad():
        new_grad = fn(grad)
    if result is param and _keeps_object(grad, new_grad):
        grad.data = new_grad
    else:
        result.grad = new_grad.requires_grad_(grad.requires_grad)
    return result


def _swapped(param, new, fn):
    """The Parameter itself, which has changed places with the converted one."""
    from facula.utils import swap_tensors

    grad, param.grad = param.grad, None
    if not isinstance(new, Parameter):
        new = Parameter(new, param.requires_grad)
    if new is not param:
        swap_tensors(param, new)
    if grad is not None:
        with facula.no_grad():
            param.grad = fn(grad).requires_grad_(grad.requires_grad)
    return param
