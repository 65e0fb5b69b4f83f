"""Handles of registered hooks, and the machinery of module backward hooks."""

from __future__ import annotations

import weakref
from collections import OrderedDict


class RemovableHandle:
    """Takes a hook out of the table that it stands in.

    Args:
        hooks_dict: dict from id to hook.
        extra_dict: a dict, or a list of dicts, that may hold the same id.

    A handle is a context manager that removes its hook on exit.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = extra_dict if isinstance(extra_dict, (list, tuple)) else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extras if d is not None)

    def remove(self):
        """Remove the hook; nothing happens when it is already gone."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        extras = tuple(ref() for ref in self.extra_dict_ref)
        return (self.hooks_dict_ref(), self.id, extras)

    def __setstate__(self, state):
        hooks, self.id = state[0], state[1]
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extras = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extras)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.remove()


def unserializable_hook(f):
    """Mark hook `f` so that saving a tensor that carries it warns; returns `f`."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warn about each hook of `tensor` that a pickle would lose."""
    for hook in (tensor._backward_hooks or {}).values():
        if hasattr(hook, "__torch_unserializable__"):
            continue
        import warnings

        warnings.warn(
            f"backward hook {hook!r} is not saved with its tensor (unserializable_hook says that "
            "it need not be)",
            stacklevel=2,
        )


def _scatter(values, indices, size):
    """A tuple of length `size` with `values` at `indices` and None elsewhere."""
    result = [None] * size
    for index, value in zip(indices, values, strict=True):
        result[index] = value
    return tuple(result)


class BackwardHook:
    """Runs a module's full backward hooks when its inputs' gradients are ready.

    Args:
        module: the module, first argument of every hook.
        user_hooks: called as hook(module, grad_input, grad_output).
        user_pre_hooks: called as hook(module, grad_output), before the module's backward.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = list(user_hooks)
        self.user_pre_hooks = list(user_pre_hooks)
        self.input_indices = None
        self.n_inputs = -1
        self.output_indices = None
        self.n_outputs = -1
        self.grad_outputs = None

    def setup_input_hook(self, args):
        """Watch the tensors of `args` (tuple); returns the tuple to call forward with."""

        def attach(grad_fn):
            grad_fn.register_hook(lambda grad_input, _: self._inputs_ready(grad_input))

        result, self.input_indices = _watch(args, attach)
        self.n_inputs = len(args)
        return result

    def setup_output_hook(self, result):
        """Watch the tensors of `result` (Tensor or tuple); returns what the module returns."""

        def attach(grad_fn):
            grad_fn.register_prehook(self._outputs_ready)

        is_tuple = isinstance(result, tuple)
        values = result if is_tuple else (result,)
        self.n_outputs = len(values)
        watched, self.output_indices = _watch(values, attach)
        if self.output_indices is None or is_tuple:
            return watched if is_tuple else result
        return watched[0]

    def _outputs_ready(self, grad_outputs):
        grads = _scatter(grad_outputs, self.output_indices, self.n_outputs)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, grads)
            if changed is not None:
                grads = self._checked(
                    changed, grads, "Backward pre hook", "grad_output", "grad_outputs"
                )
        self.grad_outputs = grads
        if self.input_indices is None:
            self._fire_without_inputs()
        if self.user_pre_hooks:
            return tuple(grads[i] for i in self.output_indices)
        return None

    def _fire_without_inputs(self):
        import warnings

        if self.user_hooks:
            warnings.warn(
                "a full backward hook runs without gradients for the inputs, because no input "
                "requires grad",
                stacklevel=5,
            )
        grad_inputs = (None,) * self.n_inputs
        for hook in self.user_hooks:
            changed = hook(self.module, grad_inputs, self.grad_outputs)
            if changed is not None and not (
                isinstance(changed, tuple) and all(x is None for x in changed)
            ):
                raise RuntimeError(
                    "a backward hook of a Module whose inputs need no grad must return None"
                )
        self.grad_outputs = None

    def _inputs_ready(self, grad_input):
        if self.grad_outputs is None:
            # The outputs took no part in this backward, so there is nothing to tell.
            return None
        grads = _scatter(grad_input, self.input_indices, self.n_inputs)
        for hook in self.user_hooks:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is not None:
                grads = self._checked(changed, grads, "Backward hook", "grad_input", "grad_input")
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_indices)

    @staticmethod
    def _checked(changed, grads, kind, singular, plural):
        result = changed if isinstance(changed, tuple) else (changed,)
        if len(result) != len(grads):
            raise RuntimeError(
                f"{kind} returned an invalid number of {singular}, got {len(result)}, but "
                f"expected {len(grads)}"
            )
        return result


def _watch(values, attach):
    """Pass the tensors of tuple `values` through an identity node and attach a hook to it.

    Returns the new tuple and the tensors' places, or None for these when no gradient flows.
    """
    import facula

    tensors = [(i, x) for i, x in enumerate(values) if isinstance(x, facula.Tensor)]
    if not facula.is_grad_enabled() or not any(x.requires_grad for _, x in tensors):
        return values, None
    from facula.nn.modules._functions import BackwardHookFunction

    watched = BackwardHookFunction.apply(*(x for _, x in tensors))
    grad_fns = [x.grad_fn for x in watched if x.grad_fn is not None]
    attach(grad_fns[0])
    result = list(values)
    for (index, _), tensor in zip(tensors, watched, strict=True):
        result[index] = tensor
    if type(values) is tuple:
        return tuple(result), [i for i, _ in tensors]
    return type(values)(*result), [i for i, _ in tensors]
