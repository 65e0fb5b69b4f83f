"""`compile` and what steers it: functions run as the Python they are, and their kernels later.

What PyTorch's compiler is told - what to leave out, which sizes change - is checked and noted; a
recorder that runs the function at each call needs none of it.
"""

from __future__ import annotations

from facula import _missing

_HOME = {
    "OptimizedModule": "eval_frame",
    "disable": "eval_frame",
    "explain": "eval_frame",
    "export": "eval_frame",
    "is_dynamo_supported": "eval_frame",
    "is_inductor_supported": "eval_frame",
    "optimize": "eval_frame",
    "optimize_assert": "eval_frame",
    "reset": "eval_frame",
    "reset_code_caches": "eval_frame",
    "run": "eval_frame",
    "list_backends": "backends",
    "lookup_backend": "backends",
    "register_backend": "backends",
}
_DECORATORS = (
    "allow_in_graph assume_constant_result disable_nested_graph_breaks disallow_in_graph "
    "dont_skip_tracing error_on_graph_break forbid_in_graph graph_break is_compiling mark_dynamic "
    "mark_static mark_static_address mark_unbacked maybe_mark_dynamic nonstrict_trace "
    "override_cudagraphs patch_dynamo_config set_stance skip_frame step_unsupported "
    "substitute_in_graph"
)
_HOME.update(dict.fromkeys(_DECORATORS.split(), "decorators"))

__all__ = sorted(_HOME)


def __getattr__(name):
    from importlib import import_module

    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    return _missing.submodule(__name__, name)
