"""TorchScript's names. Programs run as the Python they are; files and graphs of TorchScript raise.

`script` and `trace` give objects of TorchScript's classes that call the Python behind them, so that
programs which script their models go on unchanged. `save`, `load`, `.graph` and `.code` need a
compiler that facula does not have, and say so when they are called.
"""

from __future__ import annotations

from facula._jit_internal import (  # noqa: F401 (names that programs take from here)
    Final,
    _copy_to_script_wrapper,
    _drop,
    _isinstance,
    _overload,
    _overload_method,
    export,
    ignore,
    is_scripting,
    unused,
)
from facula.futures import Future
from facula.jit._script import (  # noqa: F401
    Attribute,
    CompilationUnit,
    Error,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    ScriptWarning,
    annotate,
    freeze,
    interface,
    load,
    optimize_for_inference,
    run_frozen_optimizations,
    save,
    script,
    script_if_tracing,
    script_method,
)
from facula.jit._settings import (  # noqa: F401
    _set_fusion_strategy,
    enable_onednn_fusion,
    export_opnames,
    fork,
    fuser,
    onednn_fusion_enabled,
    optimized_execution,
    set_fusion_strategy,
    strict_fusion,
    wait,
)
from facula.jit._trace import (  # noqa: F401
    TopLevelTracedModule,
    TracedModule,
    TracerWarning,
    TracingCheckError,
    is_tracing,
    trace,
    trace_module,
)

isinstance = _isinstance
_fork, _wait = fork, wait
_script_if_tracing = script_if_tracing

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "interface",
    "ignore",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
