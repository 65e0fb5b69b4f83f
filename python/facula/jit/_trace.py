"""Tracing in TorchScript's manner: the function is run once, and is what runs later."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from facula.jit._script import RecursiveScriptModule, ScriptFunction
from facula.nn import Module

_state = threading.local()


class TracerWarning(Warning):
    """A warning about what a trace does not record."""

    @staticmethod
    def ignore_lib_warnings():
        """Nothing: facula's own code gives no such warnings."""


class TracingCheckError(Exception):
    """A trace that gives other results than its function."""

    def __init__(self, graph_diff_error, tensor_compare_error, extra_msg=None):
        self.message = "Tracing failed sanity checks!\n"
        for part in (extra_msg, graph_diff_error, tensor_compare_error):
            if part is not None:
                self.message += f"{part}\n"
        super().__init__(self.message)


def is_tracing():
    """Whether `trace` is running an example in this thread."""
    return getattr(_state, "tracing", False)


@contextmanager
def _tracing():
    before = is_tracing()
    _state.tracing = True
    try:
        yield
    finally:
        _state.tracing = before


class TracedModule(RecursiveScriptModule):
    """A traced module; its `forward` is the Python module's."""


class TopLevelTracedModule(TracedModule):
    """The module that `trace` was given, traced."""

    def _get_name(self):
        return type(self._python_module).__name__


def _as_arguments(inputs):
    if inputs is None:
        return ()
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """Run a function or module on examples, and give it in TorchScript's classes.

    Args:
        func (callable or Module): what to run. Later calls run it again, control flow and all.
        example_inputs (Tensor or tuple): arguments of the run.
        example_kwarg_inputs (dict): keyword arguments of the run, in place of `example_inputs`.

    Returns:
        TopLevelTracedModule or ScriptFunction.

    Raises:
        RuntimeError: examples are missing, or given twice.

    Example:
        >>> twice = facula.jit.trace(lambda x: x * 2, facula.ones(1))
        >>> twice(facula.ones(2))
        tensor([2., 2.])
    """
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError("trace(): expected one of example_inputs and example_kwarg_inputs")
    if isinstance(func, (ScriptFunction, RecursiveScriptModule)):
        return func
    with _tracing():
        func(*_as_arguments(example_inputs), **(example_kwarg_inputs or {}))
    return TopLevelTracedModule(func) if isinstance(func, Module) else ScriptFunction(func)


def trace_module(mod, inputs, optimize=None, check_trace=True, check_inputs=None, **options):
    """Run methods of a module on examples, and give the module in TorchScript's classes.

    Args:
        mod (Module): the module.
        inputs (dict): arguments for each method's name.

    Raises:
        AttributeError: `mod` is no module, or has no such method.
    """
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    with _tracing():
        for name, arguments in inputs.items():
            method = mod if name == "forward" else getattr(mod, name)
            method(*_as_arguments(arguments))
    return TopLevelTracedModule(mod)
