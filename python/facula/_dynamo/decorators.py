"""What programs tell a compiler of functions and tensors: it is checked, noted and passed on."""

from __future__ import annotations

from contextlib import ContextDecorator

from facula._dynamo import config


def is_compiling():
    """Whether this function is being compiled: False."""
    return False


def _checked(name):
    def mark(fn):
        if isinstance(fn, (list, tuple)):
            return [mark(one) for one in fn]
        if not callable(fn):
            raise AssertionError(f"{name} expects a callable")
        return fn

    mark.__name__ = mark.__qualname__ = name
    mark.__doc__ = f"The function, or list of functions, as it is ({name})."
    return mark


allow_in_graph = _checked("allow_in_graph")
disallow_in_graph = _checked("disallow_in_graph")
forbid_in_graph = _checked("forbid_in_graph")
nonstrict_trace = _checked("nonstrict_trace")


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
    """Nothing: there is no graph to end here."""


skip_frame = step_unsupported = graph_break


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


class set_stance(_Passing):
    """Function, context manager and decorator: how a compiler would behave; nothing changes.

    Args:
        stance (str): "default", "force_eager", "eager_on_recompile", "fail_on_recompile" ...
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance


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
