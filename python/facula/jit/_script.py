"""Functions and modules in the classes of TorchScript: the Python behind them is what runs."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any, NamedTuple

from facula.nn import Module


class Error(Exception):
    """An error that a TorchScript program raised."""


class ScriptWarning(Warning):
    """A warning about what TorchScript makes of a program."""


class Attribute(NamedTuple):
    """A value with the type that TorchScript is to give it."""

    value: Any
    type: Any


def annotate(the_type, the_value):
    """The value; TorchScript would give it this type.

    Example:
        >>> facula.jit.annotate(list[int], [1])
        [1]
    """
    return the_value


def interface(obj):
    """The class; TorchScript would take it as an interface of modules.

    Raises:
        RuntimeError: it is no class.
    """
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    return obj


def _missing(what):
    return NotImplementedError(f"{what}: facula has no TorchScript compiler; the Python runs as is")


class _Code:
    """An attribute that only a compiled program has."""

    def __set_name__(self, owner, name):
        self.name = f"{owner.__name__}.{name}"

    def __get__(self, instance, owner):
        if instance is None:
            return self
        raise _missing(self.name)


class _Files:
    """What needs the compiled program: its text, its graph, its file."""

    code = _Code()
    code_with_constants = _Code()
    graph = _Code()
    inlined_graph = _Code()

    def graph_for(self, *args, **kwargs):
        """The graph optimized for these inputs: needs a compiler."""
        raise _missing(f"{type(self).__name__}.graph_for()")

    def get_debug_state(self, *args, **kwargs):
        """The state of the executor: needs a compiler."""
        raise _missing(f"{type(self).__name__}.get_debug_state()")

    def save(self, f, **kwargs):
        """Write the program and its weights to a file: needs a compiler."""
        raise _missing(f"{type(self).__name__}.save()")

    def save_to_buffer(self, *args, **kwargs):
        """The program and its weights as bytes: needs a compiler."""
        raise _missing(f"{type(self).__name__}.save_to_buffer()")


class ScriptFunction(_Files):
    """A function that was scripted or traced; calling it calls the Python function.

    Args:
        function (callable): the Python function.
    """

    schema = _Code()

    def __init__(self, function):
        self._torchdynamo_inline = self.__wrapped__ = function
        self.__name__ = self.__qualname__ = "ScriptFunction"
        self.__doc__ = getattr(function, "__doc__", None)

    def __call__(self, *args, **kwargs):
        return self.__wrapped__(*args, **kwargs)

    @property
    def name(self):
        """The function's name."""
        return getattr(self.__wrapped__, "__name__", type(self.__wrapped__).__name__)

    @property
    def qualified_name(self):
        """The function's name with its module's, in TorchScript's manner."""
        module = getattr(self.__wrapped__, "__module__", "__main__") or "__main__"
        return "__torch__." + ("" if module == "__main__" else f"{module}.") + self.name


class ScriptModule(_Files, Module):
    """The base class of modules of TorchScript; its methods are Python's own."""

    def define(self, src):
        """Compile methods from text: needs a compiler."""
        raise _missing("ScriptModule.define()")

    @property
    def original_name(self):
        """The name of the class of the Python module."""
        return type(self).__name__


class RecursiveScriptModule(ScriptModule):
    """A scripted module: the Python module's parts and attributes, and its `forward`.

    It shares its attributes with the Python module, so that changing one changes the other.
    """

    __slots__ = ("_python_module",)

    def __init__(self, module):
        # The dictionary itself is shared: parameters, hooks, `training` and all.
        object.__setattr__(self, "__dict__", module.__dict__)
        RecursiveScriptModule._python_module.__set__(self, module)

    def __getattr__(self, name):
        return getattr(RecursiveScriptModule._python_module.__get__(self), name)

    def forward(self, *args, **kwargs):
        """What the Python module's `forward` gives."""
        return self._python_module.forward(*args, **kwargs)

    def __len__(self):
        return len(self._python_module)

    def __iter__(self):
        return iter(self._python_module)

    def __getitem__(self, index):
        return self._python_module[index]

    def __contains__(self, name):
        return name in self._python_module

    def __bool__(self):
        return True

    def __copy__(self):
        import copy

        return type(self)(copy.copy(self._python_module))

    def __deepcopy__(self, memo):
        import copy

        return type(self)(copy.deepcopy(self._python_module, memo))

    def __reduce_ex__(self, protocol):
        raise _missing("pickling a ScriptModule")

    @property
    def original_name(self):
        """The name of the class of the Python module."""
        return type(self._python_module).__name__

    def extra_repr(self):
        """The class of the Python module."""
        return f"original_name={self.original_name}"


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function or module in TorchScript's classes; the Python behind it is what runs.

    Args:
        obj (callable, Module, class, list or dict): classes and containers come back as they are.

    Returns:
        ScriptFunction, RecursiveScriptModule, or `obj`.

    Raises:
        RuntimeError: a class of modules instead of a module.
        TypeError: nothing that can be scripted.

    Example:
        >>> @facula.jit.script
        ... def twice(x):
        ...     return x * 2
        >>> twice(facula.ones(1))
        tensor([2.])
    """
    if isinstance(obj, (ScriptModule, ScriptFunction)):
        return obj
    if isinstance(obj, Module):
        return RecursiveScriptModule(obj)
    if inspect.isclass(obj):
        if issubclass(obj, Module):
            raise RuntimeError(
                f"Type '{obj}' cannot be compiled since it inherits from nn.Module, pass an "
                "instance instead"
            )
        return obj
    if isinstance(obj, (list, dict)):
        return obj
    if callable(obj):
        return ScriptFunction(obj)
    raise TypeError(f"script(): expected a function, Module or class; got {type(obj)}")


def script_method(fn):
    """The method of a ScriptModule as it is."""
    return fn


def script_if_tracing(fn):
    """The function with the marks of one that is compiled when a trace reaches it."""

    @functools.wraps(fn)
    def run(*args, **kwargs):
        return fn(*args, **kwargs)

    setattr(run, "__original_fn", fn)  # noqa: B010 (a name that a class body would mangle)
    setattr(run, "__script_if_tracing_wrapper", True)  # noqa: B010
    return run


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A scripted module in evaluation mode, as it is.

    Raises:
        RuntimeError: it is not scripted, or is in training mode.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    return mod


def optimize_for_inference(mod, other_methods=None):
    """A scripted module as it is; RuntimeError where `freeze` raises it."""
    return freeze(mod.eval() if isinstance(mod, ScriptModule) else mod)


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Nothing: what runs is the Python module."""


def save(m, f, _extra_files=None):
    """Write a scripted module to a file: NotImplementedError, as it needs a compiler."""
    m.save(f, _extra_files=_extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read a file of TorchScript.

    Raises:
        ValueError: there is no such file.
        NotImplementedError: there is one, and it needs a compiler.
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    raise _missing("jit.load()")


class CompilationUnit:
    """A set of compiled functions: NotImplementedError when it is given text to compile."""

    def __init__(self, lang=None, _frames_up=0):
        if lang is not None:
            self.define(lang)

    def define(self, lang, rcb=None, _frames_up=0):
        """Compile functions from text: needs a compiler."""
        raise _missing("CompilationUnit.define()")

    def get_functions(self):
        """The compiled functions: none."""
        return []

    def find_function(self, name):
        """None: there are no compiled functions."""
        return None
