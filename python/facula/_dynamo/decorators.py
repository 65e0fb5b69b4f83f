"""What programs tell a compiler of functions and tensors."""

from __future__ import annotations

import functools
from contextlib import ContextDecorator
from dataclasses import dataclass

from facula import _C, _capture
from facula._dynamo import config


def is_compiling():
    """Whether this runs within a compiled function."""
    return _C._is_recording() or _capture.current() is not None


def _checked(name, wrap):
    def mark(fn):
        if isinstance(fn, (list, tuple)):
            return [mark(one) for one in fn]
        if not callable(fn):
            raise AssertionError(f"{name} expects a callable")
        return wrap(fn)

    mark.__name__ = mark.__qualname__ = name
    return mark


def _one_call(function):
    """The function as one call of captured graphs."""
    if not hasattr(function, "__code__"):
        return function

    @functools.wraps(function)
    def run(*args, **kwargs):
        capture = _capture.current()
        if capture is None:
            return function(*args, **kwargs)
        return capture.defer(function, args, kwargs)

    return run


def _never_captured(function):
    return _capture.not_captured(f"{_name_of(function)}() is not to be in a graph")(function)


def _name_of(function):
    return getattr(function, "__name__", type(function).__name__)


allow_in_graph = _checked("allow_in_graph", _one_call)
allow_in_graph.__doc__ = "The function, or list of functions, as one call of captured graphs."
nonstrict_trace = _checked("nonstrict_trace", _one_call)
nonstrict_trace.__doc__ = "The function as one call of captured graphs."
disallow_in_graph = _checked("disallow_in_graph", _never_captured)
disallow_in_graph.__doc__ = "The function, which ends a captured graph and runs as it is."
forbid_in_graph = _checked("forbid_in_graph", lambda function: function)
forbid_in_graph.__doc__ = "The function, or list of functions, as it is."


def assume_constant_result(fn):
    """Mark a function as one that always gives the same; returns it."""
    fn._dynamo_marked_constant = True
    return fn


def _decorator(name):
    def decorate(fn=None):
        return (lambda function: function) if fn is None else fn

    decorate.__name__ = decorate.__qualname__ = name
    decorate.__doc__ = f"The function as it is; a decorator with or without arguments ({name})."
    return decorate


disable_nested_graph_breaks = _decorator("disable_nested_graph_breaks")
dont_skip_tracing = _decorator("dont_skip_tracing")


def substitute_in_graph(
    original_fn,
    *,
    can_constant_fold_through=False,
    skip_signature_check=False,
    is_embedded_type=False,
):
    """A decorator for what a compiler takes in place of `original_fn`; the function is as it is."""
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph(): expected a function; got {original_fn!r}")
    return lambda function: function


def graph_break(msg=""):
    """End the graph of a captured function here.

    Args:
        msg (str): why, for messages.
    """
    _capture.finish(msg or "graph_break()")


def step_unsupported(msg=""):
    """The same as `graph_break`."""
    graph_break(msg)


def skip_frame(msg=""):
    """Nothing: a function that is called runs as Python in any case."""


class _Passing(ContextDecorator):
    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return False


class error_on_graph_break(_Passing):
    """Context manager and decorator: nothing changes.

    Args:
        error_on_graph_break (bool): what a compiler would do.
    """

    def __init__(self, error_on_graph_break):
        self.error_on_graph_break = error_on_graph_break


class override_cudagraphs(_Passing):
    """Context manager and decorator: nothing changes."""

    def __init__(self, fwd=None, bwd=None):
        self.fwd, self.bwd = fwd, bwd


_STANCES = (
    "default force_eager eager_on_recompile fail_on_recompile eager_then_compile "
    "aot_eager_then_compile"
).split()


@dataclass(frozen=True)
class _Stance:
    stance: str = "default"
    backend: object = None

    @property
    def starts_eager(self):
        """Whether the first call of a function runs as it is."""
        return self.stance in ("eager_then_compile", "aot_eager_then_compile")


_stance = _Stance()


def current_stance():
    """What `set_stance` has set."""
    return _stance


class set_stance(ContextDecorator):
    """Function, context manager and decorator: how functions that were compiled are called.

    Args:
        stance (str): "default"; "force_eager": as if they were not compiled; "eager_on_recompile":
            what was not compiled runs as it is; "fail_on_recompile": it raises RuntimeError;
            "eager_then_compile", "aot_eager_then_compile": the first call runs as it is.
        skip_guard_eval_unsafe (bool): accepted; there are no guards.
        force_backend (str or callable): takes the place of the functions' backends.

    Raises:
        RuntimeError: an unknown stance, or a backend beside another stance than "default".
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        global _stance
        if stance not in _STANCES:
            raise RuntimeError(f"set_stance(): expected one of {_STANCES}; got {stance!r}")
        if force_backend is not None and stance != "default":
            raise RuntimeError(
                f"set_stance(): expected stance 'default' beside force_backend; got {stance!r}"
            )
        if isinstance(force_backend, str):
            from facula._dynamo.backends.registry import lookup_backend

            force_backend = lookup_backend(force_backend)
        self.stance, self._wanted, self._before = stance, _Stance(stance, force_backend), _stance
        _stance = self._wanted

    def __call__(self, function):
        # As a decorator it holds within the function alone.
        global _stance
        _stance = self._before
        return super().__call__(function)

    def __enter__(self):
        global _stance
        if _stance is not self._wanted:
            self._before, _stance = _stance, self._wanted

    def __exit__(self, *exception):
        global _stance
        _stance = self._before


def patch_dynamo_config(arg1=None, arg2=None, **kwargs):
    """`_dynamo.config.patch`."""
    return config.patch(arg1, arg2, **kwargs)


# --- sizes that change


def _note(t, index, name):
    dims = range(t.dim()) if index is None else index
    for dim in dims if isinstance(dims, (list, tuple, range)) else (dims,):
        noted = getattr(t, name, None)
        if noted is None:
            noted = set()
            setattr(t, name, noted)
        noted.add(dim)


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Note on a tensor that a dimension's size (int or list of int) changes from call to call.

    Example:
        >>> x = facula.ones(3)
        >>> facula._dynamo.mark_dynamic(x, 0)
        >>> x._dynamo_dynamic_indices
        {0}
    """
    _note(t, index, "_dynamo_dynamic_indices")


def mark_unbacked(
    t, index, hint_override=None, strict=False, specialize_on=None, shape_id=None, **kwargs
):
    """Note on a tensor that a dimension's size may be any, zero and one among them.

    Captured graphs take such sizes as those that `mark_dynamic` notes.
    """
    _note(t, index, "_dynamo_dynamic_indices")


def maybe_mark_dynamic(t, index, *, min=None, max=None):
    """Note on a tensor that a dimension's size may change from call to call."""
    _note(t, index, "_dynamo_weak_dynamic_indices")


def mark_static(t, index=None):
    """Note on a tensor that sizes (all where `index` is None) stay the same."""
    if not isinstance(t, type):
        _note(t, index, "_dynamo_static_indices")


def mark_static_address(t, guard=False):
    """Note on a tensor that its memory stays where it is."""
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"
