"""Which of facula's functions `__torch_function__` is told of: found, not listed."""

from __future__ import annotations

import inspect

import facula
from facula import _C

# What a class needs of Python itself, and what makes or describes classes.
_NEVER = frozenset(
    "__class__ __delattr__ __getattribute__ __init__ __init_subclass__ __new__ __setattr__ "
    "__subclasshook__ __torch_dispatch__ __torch_function__ __hash__ __iter__ __dir__ __dict__ "
    "__doc__ __module__ __weakref__ __array_priority__ _make_subclass _make_wrapper_subclass "
    "as_subclass".split()
)
# Names of every object: a class has them whether it defines them or not.
_OF_OBJECT = frozenset(dir(object))


def _tensor_operators():
    """Names of operators and aliases that take tensors."""
    found = set()
    for fact in _C._operator_table():
        if fact["tensor_inputs"]:
            found.add(fact["name"])
            found.update(alias.strip() for alias in fact["aliases"].split(","))
    return found


class _Survey:
    """Goes through the namespaces; `told` are overridable functions by place, `ignored` others."""

    def __init__(self):
        self.told, self.ignored = {}, set()
        self._operators = _tensor_operators()

    def note(self, place, function, overridable):
        if overridable:
            self.told.setdefault(place, []).append(function)
        else:
            self.ignored.add(function)

    def module(self, module, prefix=""):
        for name in dir(module):
            function = getattr(module, name, None)
            if name.startswith("_") or inspect.isclass(function) or not callable(function):
                continue
            place = module
            if isinstance(function, _C.overridable):
                place = _import(function.__module__)
                self.note(place, function, True)
            elif type(function).__name__ == "builtin_function":
                self.note(place, function, self._takes_tensors(function, name, prefix))
            elif getattr(function, "__module__", "").partition(".")[0] == facula.__name__:
                self.note(place, function, name in _ASK_BY_HAND)

    def _takes_tensors(self, function, name, prefix):
        shown = function.__name__
        return bool(self._operators & {name, shown, prefix + name, f"{name}_"[:-1]}) or (
            name.endswith("_")
            and (name[:-1] in self._operators or prefix + name in self._operators)
        )

    def tensor(self):
        for name in dir(_C.Tensor):
            if name in _NEVER:
                continue
            value = getattr(_C.Tensor, name)
            if name in _OF_OBJECT and value is getattr(object, name, None):
                continue
            if inspect.isdatadescriptor(value):
                self.told.setdefault(value, []).append(value.__get__)
            elif callable(value):
                self.note(_C.Tensor, value, True)


# Functions of the extension that ask for overrides themselves.
_ASK_BY_HAND = frozenset(
    "is_floating_point is_complex is_signed numel result_type can_cast promote_types".split()
)


def _import(name):
    from importlib import import_module

    return import_module(name)


def overridable_functions():
    """(functions by module, Tensor or property; the set of all others)."""
    survey = _Survey()
    survey.module(facula)
    survey.module(_import("facula.nn.functional"))
    survey.module(_import("facula.nn.init"))
    for name in ("linalg", "fft", "special"):
        survey.module(_import(f"facula.{name}"), f"{name}_")
    survey.tensor()
    for place, functions in survey.told.items():
        survey.told[place] = list(dict.fromkeys(functions))
    return survey.told, survey.ignored


def _same_signature(function):
    """A function with the parameters of another that returns -1."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return lambda *args, **kwargs: -1
    source = ", ".join(_parameter(p) for p in parameters)
    defaults = {f"_default_{p.name}": p.default for p in parameters}
    return eval(f"lambda {source}: -1", defaults)


def _parameter(parameter):
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    if star or parameter.default is not parameter.empty:
        return f"{star}{parameter.name}" + ("" if star else f"=_default_{parameter.name}")
    # After a keyword-only star a parameter without default must be given by name in any case.
    return (
        parameter.name if parameter.kind is not parameter.KEYWORD_ONLY else f"{parameter.name}=None"
    )


def testing_overrides(told):
    """A dict of overridable functions and lambdas of the same signature."""
    found = {}
    for functions in told.values():
        for function in functions:
            is_getter = getattr(function, "__name__", "") == "__get__"
            found[function] = (lambda self: -1) if is_getter else _same_signature(function)
    return found
