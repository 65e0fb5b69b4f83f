"""Hooks of modules: the tables for all modules, registration, and the call that runs them."""

from __future__ import annotations

import weakref
from collections import OrderedDict

import facula
from facula.utils.hooks import BackwardHook, RemovableHandle

_global_parameter_registration_hooks = OrderedDict()
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
# Whether the global backward hooks are full ones: None until one is registered.
_global_backward_kind = {"is_full": None}


def _add(table, hook, *, extra=(), prepend=False):
    handle = RemovableHandle(table, extra_dict=list(extra))
    table[handle.id] = hook
    for marks in extra:
        marks[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_module_parameter_registration_hook(hook):
    """Call hook(module, name, param) whenever any module registers a parameter."""
    return _add(_global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook):
    """Call hook(module, name, buffer) whenever any module registers a buffer."""
    return _add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call hook(module, name, submodule) whenever any module registers a child."""
    return _add(_global_module_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call hook(module, args) before the forward of every module."""
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call hook(module, args, output) after the forward of every module."""
    extra = []
    if with_kwargs:
        extra.append(_global_forward_hooks_with_kwargs)
    if always_call:
        extra.append(_global_forward_hooks_always_called)
    return _add(_global_forward_hooks, hook, extra=extra)


def register_module_full_backward_pre_hook(hook):
    """Call hook(module, grad_output) before the backward of every module."""
    return _add(_global_backward_pre_hooks, hook)


def _set_global_kind(is_full):
    if _global_backward_kind["is_full"] is (not is_full):
        raise RuntimeError(
            "Module: global backward hooks must all be full ones or all be of the old kind; got "
            "both"
        )
    _global_backward_kind["is_full"] = is_full


def register_module_backward_hook(hook):
    """Call the old-style hook(module, grad_input, grad_output) in the backward of every module."""
    _set_global_kind(False)
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call hook(module, grad_input, grad_output) in the backward of every module."""
    _set_global_kind(True)
    return _add(_global_backward_hooks, hook)


def _has_any_global_hook():
    return bool(
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


class _WrappedHook:
    """A state-dict hook that gets its module as first argument, held weakly."""

    __module__ = f"{facula.__name__}.nn.modules.module"  # where pickles of PyTorch have it

    def __init__(self, hook, module=None) -> None:
        self.hook = hook
        self.__name__ = getattr(hook, "__name__", type(hook).__name__)
        self.__doc__ = hook.__doc__
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("the hook's Module is dead")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if not self.with_module:
            return
        if state["module"] is None:
            raise RuntimeError("the hook's Module is dead and cannot be pickled")
        self.module = weakref.ref(state["module"])


class HookMethods:
    """The part of Module that registers hooks and runs a call that has some."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call hook(module, args) before forward; it may return new args. Returns a handle.

        With `with_kwargs` the hook gets (module, args, kwargs) and may return (args, kwargs).
        """
        extra = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _add(self._forward_pre_hooks, hook, extra=extra, prepend=prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call hook(module, args, output) after forward; it may return a new output.

        With `with_kwargs` the hook gets (module, args, kwargs, output); with `always_call` it
        also runs when forward raises. Returns a handle.
        """
        extra = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            extra.append(self._forward_hooks_always_called)
        return _add(self._forward_hooks, hook, extra=extra, prepend=prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call hook(module, grad_output) before backward; returns a handle."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call hook(module, grad_input, grad_output) after backward; returns a handle.

        Raises:
            RuntimeError: the module has old-style backward hooks.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Module: backward hooks must all be full ones or all be of the old kind; got both"
            )
        self._is_full_backward_hook = True
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """Register an old-style backward hook; prefer `register_full_backward_hook`.

        Raises:
            RuntimeError: the module has full backward hooks.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Module: backward hooks must all be full ones or all be of the old kind; got both"
            )
        self._is_full_backward_hook = False
        return _add(self._backward_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call hook(module, prefix, keep_vars) before `state_dict` is built; returns a handle."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call hook(module, state_dict, prefix, local_metadata) afterwards; it edits in place."""
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "register_state_dict_post_hook(): this function is a hook already, without a kind"
            )
        return _add(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        wrapped = _WrappedHook(hook, self if with_module else None)
        return _add(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook):
        """Call hook(module, state_dict, prefix, ...) before loading; returns a handle."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call hook(module, incompatible_keys) after loading; it edits the keys in place."""
        return _add(self._load_state_dict_post_hooks, hook)

    def _get_backward_hooks(self):
        """The full and the old-style backward hooks of a call: two lists."""
        full, old = [], []
        is_full = _global_backward_kind["is_full"]
        if is_full is not None:
            (full if is_full else old).extend(_global_backward_hooks.values())
        if self._is_full_backward_hook is not None:
            (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _call_impl(self, *args, **kwargs):
        """Run forward with every hook; hooks marked always_call run even when it raises."""
        called = set()
        result = None
        try:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
            full, old = self._get_backward_hooks()
            pre = self._get_backward_pre_hooks()
            backward = BackwardHook(self, full, pre) if full or pre else None
            if backward is not None:
                args = backward.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            result = self._run_forward_hooks(args, kwargs, result, called)
            if backward is not None:
                result = self._watch_outputs(backward, result)
            if old:
                self._attach_old_backward_hooks(old, args, result)
            return result
        except Exception:
            self._run_always_called(args, kwargs, result, called)
            raise

    def _run_forward_pre_hooks(self, args, kwargs):
        for hook in tuple(_global_forward_pre_hooks.values()):
            args = _new_args(hook(self, args), args)
        for hook_id, hook in tuple(self._forward_pre_hooks.items()):
            if hook_id not in self._forward_pre_hooks_with_kwargs:
                args = _new_args(hook(self, args), args)
                continue
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    "a forward pre-hook with kwargs must return None or (args, "
                    f"kwargs); got {changed}"
                )
            args, kwargs = changed
        return args, kwargs

    def _forward_hook_table(self):
        """Every forward hook of a call: (id, hook, takes kwargs, always called)."""
        for hook_id, hook in tuple(_global_forward_hooks.items()):
            yield (
                hook_id,
                hook,
                hook_id in _global_forward_hooks_with_kwargs,
                hook_id in _global_forward_hooks_always_called,
            )
        for hook_id, hook in tuple(self._forward_hooks.items()):
            yield (
                hook_id,
                hook,
                hook_id in self._forward_hooks_with_kwargs,
                hook_id in self._forward_hooks_always_called,
            )

    def _run_forward_hooks(self, args, kwargs, result, called):
        for hook_id, hook, with_kwargs, always in self._forward_hook_table():
            if always:
                called.add(hook_id)
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    def _run_always_called(self, args, kwargs, result, called):
        for hook_id, hook, with_kwargs, always in self._forward_hook_table():
            if not always or hook_id in called:
                continue
            try:
                changed = (
                    hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                )
                result = result if changed is None else changed
            except Exception as error:
                import warnings

                warnings.warn(
                    "a forward hook with always_call=True raised too, after forward had raised: "
                    f"{error}",
                    stacklevel=2,
                )

    def _watch_outputs(self, backward, result):
        if isinstance(result, (facula.Tensor, tuple)):
            return backward.setup_output_hook(result)
        import warnings

        warnings.warn(
            "Module: backward hooks need a Tensor or a tuple of Tensors as output; got "
            f"{type(result).__name__}",
            stacklevel=3,
        )
        return result

    def _attach_old_backward_hooks(self, hooks, args, result):
        first = result
        while not isinstance(first, facula.Tensor):
            values = first.values() if isinstance(first, dict) else first
            first = next((v for v in values if isinstance(v, facula.Tensor)), next(iter(values)))
        grad_fn = first.grad_fn
        if grad_fn is None:
            return
        for hook in hooks:

            def call(grad_input, grad_output, hook=hook):
                return hook(self, grad_input, grad_output)

            grad_fn.register_hook(call)
        self._maybe_warn_non_full_backward_hook(args, result, grad_fn)

    def _maybe_warn_non_full_backward_hook(self, args, result, grad_fn):
        import warnings

        def warn(reason):
            warnings.warn(f"a backward hook of the old kind: {reason}", FutureWarning, stacklevel=4)

        results = [result] if isinstance(result, facula.Tensor) else result
        if not isinstance(results, tuple | list) or not all(
            isinstance(r, facula.Tensor) for r in results
        ):
            return warn(
                "outputs lie inside other containers: the hook sees only a part of grad_output"
            )
        inputs = args
        if not all(isinstance(i, facula.Tensor) for i in inputs):
            return warn(
                "inputs lie inside other containers: the hook sees only a part of grad_input"
            )
        if len({r.grad_fn for r in results}) > 1:
            return warn(
                "outputs come from several nodes of the graph: the hook sees only a part "
                "of grad_output"
            )
        sources = {i.grad_fn for i in inputs if i.grad_fn is not None}
        if sources - {fn for fn, _ in grad_fn.next_functions}:
            return warn(
                "forward has several nodes of the graph: the hook sees only a part of grad_input"
            )


def _new_args(changed, args):
    if changed is None:
        return args
    return changed if isinstance(changed, tuple) else (changed,)
