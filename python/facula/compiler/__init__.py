"""What programs ask of and tell a compiler: functions run as they are."""

from __future__ import annotations

from contextlib import ContextDecorator

from facula._dynamo.backends.registry import list_backends, lookup_backend
from facula._dynamo.decorators import (  # noqa: F401
    allow_in_graph,
    assume_constant_result,
    is_compiling,
    nonstrict_trace,
    set_stance,
)
from facula._dynamo.decorators import substitute_in_graph as _substitute_in_graph
from facula._dynamo.eval_frame import compile, disable, reset  # noqa: F401
from facula.compiler import config  # noqa: F401
from facula.compiler._visualize import visualize  # noqa: F401

__all__ = [
    "compile",
    "config",
    "assume_constant_result",
    "reset",
    "nonstrict_trace",
    "allow_in_graph",
    "substitute_in_graph",
    "list_backends",
    "disable",
    "set_default_backend",
    "get_default_backend",
    "set_stance",
    "set_enable_guard_collectives",
    "cudagraph_mark_step_begin",
    "cudagraph_mark_warmup_incomplete",
    "load_compiled_function",
    "PrecompileError",
    "wrap_numpy",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "save_cache_artifacts",
    "load_cache_artifacts",
    "keep_portable_guards_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "keep_tensor_guards_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_all_guards_unsafe",
    "nested_compile_region",
]

_default_backend = ["inductor"]


class PrecompileError(RuntimeError):
    """A program that cannot be compiled ahead of time."""


def is_exporting():
    """Whether this function is being exported: False."""
    return False


is_dynamo_compiling = is_compiling
_is_non_strict_tracing = is_exporting


def get_default_backend():
    """The backend that `compile` takes unless it is told another."""
    return _default_backend[0]


def set_default_backend(backend):
    """Set what `get_default_backend` gives; None for the first one.

    Raises:
        RuntimeError: the name is not registered.
    """
    lookup_backend("inductor" if backend is None else backend)
    _default_backend[0] = "inductor" if backend is None else backend


def substitute_in_graph(
    original_fn, *, can_constant_fold_through=False, skip_signature_check=False
):
    """A decorator for what a compiler takes in place of `original_fn`; the function is as it is."""
    return _substitute_in_graph(original_fn)


def nested_compile_region(fn=None, *, options=None, max_reuse_entries=8, reuse_hash_fn=None):
    """The function as it is: a part that a compiler would compile once."""
    return (lambda function: function) if fn is None else fn


def wrap_numpy(fn):
    """A function of NumPy arrays as one of tensors.

    Example:
        >>> facula.compiler.wrap_numpy(lambda a: a + 1)(facula.zeros(2))
        tensor([1., 1.])
    """
    import functools

    import facula
    from facula.utils._pytree import tree_map

    @functools.wraps(fn)
    def run(*args, **kwargs):
        args, kwargs = tree_map(
            lambda x: x.numpy() if isinstance(x, facula.Tensor) else x, (args, kwargs)
        )
        result = fn(*args, **kwargs)
        arrays = lambda x: type(x).__module__ == "numpy"  # noqa: E731
        return tree_map(lambda x: facula.as_tensor(x) if arrays(x) else x, result)

    return run


def set_enable_guard_collectives(enabled):
    """Nothing: there are no guards. Returns what was set before, False."""
    return False


def cudagraph_mark_step_begin():
    """Nothing: there are no CUDA graphs."""


cudagraph_mark_warmup_incomplete = cudagraph_mark_step_begin


def save_cache_artifacts():
    """What was compiled, as bytes: None, as nothing was."""
    return None


def load_cache_artifacts(serialized_artifacts):
    """Take over what was compiled elsewhere: None, as there is no compiler."""
    return None


def load_compiled_function(file, *, f_globals=None, external_data=None):
    """Read a compiled function: NotImplementedError, as there is no compiler."""
    raise NotImplementedError("compiler.load_compiled_function(): facula has no compiler yet")


# --- filters of guards: which of them stay


def keep_tensor_guards_unsafe(guard_entries, keep_parameters=False):
    """Which guards are about tensors, as a list of bool."""
    kinds = [entry.guard_type for entry in guard_entries]
    return [kind == "TENSOR_MATCH" for kind in kinds]


def skip_guard_on_globals_unsafe(guard_entries):
    """Which guards are not about globals, as a list of bool."""
    return [not entry.is_global for entry in guard_entries]


def skip_all_guards_unsafe(guard_entries):
    """False for each guard, as a list."""
    return [False for _ in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries):
    """Which guards are not about modules, as a list of bool."""
    return [not getattr(entry.orig_guard.source, "is_nn_module", bool)() for entry in guard_entries]


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe


def keep_portable_guards_unsafe(guard_entries):
    """Which guards hold on another machine, as a list of bool."""
    return [
        keep and entry.guard_type not in ("ID_MATCH", "CLOSURE_MATCH")
        for keep, entry in zip(
            skip_guard_on_globals_unsafe(guard_entries), guard_entries, strict=True
        )
    ]
