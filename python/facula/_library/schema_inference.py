"""Schemas of Python functions, from their annotations."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing

import facula
from facula import _C

_SCALAR = frozenset((int, float, bool))
_SIMPLE = {
    facula.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    facula.dtype: "ScalarType",
    facula.device: "Device",
}
_IN_LISTS = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RETURNED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_DEFAULTS = (int, float, bool, str, type(None), facula.dtype, facula.device)


def _union_members(annotation):
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return set(typing.get_args(annotation))
    return None


def _element_text(annotation):
    """The schema's word for what is no list and not optional; None for an unfit annotation."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    return "Scalar" if _union_members(annotation) == _SCALAR else None


def _optional_parts(annotation):
    """(annotation without None, whether None was in it)."""
    members = _union_members(annotation)
    if members is None or type(None) not in members:
        return annotation, False
    rest = tuple(arg for arg in typing.get_args(annotation) if arg is not type(None))
    return typing.Union[rest], True


def _list_text(annotation, kinds):
    if typing.get_origin(annotation) not in kinds or len(typing.get_args(annotation)) != 1:
        return None
    element, optional = _optional_parts(typing.get_args(annotation)[0])
    text = _element_text(element)
    if text not in _IN_LISTS or (optional and text != "Tensor"):
        return None
    return f"{text}{'?' if optional else ''}[]"


def _argument_text(annotation):
    if annotation is facula.Generator:
        return "Generator"
    inner, optional = _optional_parts(annotation)
    text = _element_text(inner) or _list_text(inner, (list, collections.abc.Sequence))
    return text and text + ("?" if optional else "")


def _result_text(annotation):
    text = _element_text(annotation)
    if text in _RETURNED:
        return text
    text = _list_text(annotation, (list,))
    return text if text == "Tensor[]" else None


class _Reader:
    """Reads one function; every complaint names it and its signature."""

    def __init__(self, function, mutates_args):
        self.mutates, self.signature = mutates_args, inspect.signature(function)
        try:
            self.hints = typing.get_type_hints(function)
        except NameError as error:
            raise self.bad(f"Unsupported type annotation: {error}") from error
        self.signature = self.signature.replace(
            parameters=[
                p.replace(annotation=self.hints.get(name, p.annotation))
                for name, p in self.signature.parameters.items()
            ]
        )

    def bad(self, complaint):
        return ValueError(
            f"infer_schema(func): {complaint} Got func with signature {self.signature})"
        )

    def is_mutated(self, name):
        return self.mutates == "unknown" or name in self.mutates

    def argument(self, position, name, parameter):
        if name not in self.hints:
            raise self.bad(f"Parameter {name} must have a type annotation.")
        text = _argument_text(self.hints[name])
        if text is None:
            raise self.bad(
                f"Parameter {name} has unsupported type {self.hints[name]}."
                + self.advice(self.hints[name])
            )
        if self.is_mutated(name):
            text = self.marked(text, position, name)
        return f"{text} {name}{self.default(name, parameter)}"

    def advice(self, annotation):
        if typing.get_origin(annotation) is not tuple:
            return ""
        return " A schema has no tuples as inputs; List says the same."

    def marked(self, text, position, name):
        if text.startswith("Tensor"):
            return text.replace("Tensor", f"Tensor(a{position}!)", 1)
        if self.mutates == "unknown":
            return text
        raise self.bad(
            f"mutates_args names {name}, which is neither a Tensor nor a list of Tensors"
        )

    def default(self, name, parameter):
        value = parameter.default
        if value is parameter.empty:
            return ""
        if not isinstance(value, _DEFAULTS):
            raise self.bad(f"No schema can say the default of {name}, {value!r}.")
        if isinstance(value, facula.dtype):
            return "=" + str(value).rpartition(".")[2]
        return f'="{value}"' if isinstance(value, (str, facula.device)) else f"={value}"

    def arguments(self):
        parts, starred = [], False
        for position, (name, parameter) in enumerate(self.signature.parameters.items()):
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise self.bad(f"{name} must be an ordinary or a keyword-only parameter.")
            if parameter.kind is parameter.KEYWORD_ONLY and not starred:
                parts.append("*")
                starred = True
            parts.append(self.argument(position, name, parameter))
        return ", ".join(parts)

    def results(self):
        if self.signature.return_annotation is self.signature.empty:
            raise self.bad("No return type annotation was provided. Please add one.")
        returned = self.hints["return"]
        if returned is None or returned is type(None):
            return "()"
        several = typing.get_args(returned) if typing.get_origin(returned) is tuple else (returned,)
        texts = [_result_text(one) for one in several]
        if None in texts:
            raise self.bad(f"Return has unsupported type {several[texts.index(None)]}.")
        if typing.get_origin(returned) is not tuple:
            return texts[0]
        return f"({', '.join(texts)})"


def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()):
    """The schema text of a function with annotations.

    Args:
        prototype_function: every parameter and the result are annotated.
        mutates_args: names of the arguments that it writes, or "unknown".
        op_name (str): stands before the schema when given.
        tags: not part of the text.

    Returns:
        str: "(Tensor x, SymInt n=1) -> Tensor".

    Raises:
        ValueError: annotations or defaults that no schema can say.
    """
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "infer_schema(): mutates_args must be names of arguments or 'unknown'; got "
            f"{mutates_args!r}"
        )
    reader = _Reader(prototype_function, mutates_args)
    unknown = (
        set() if mutates_args == "unknown" else set(mutates_args) - set(reader.signature.parameters)
    )
    if unknown:
        raise reader.bad(f"mutates_args names {sorted(unknown)}, which the function does not take.")
    return f"{op_name or ''}({reader.arguments()}) -> {reader.results()}"


def overload_of(op, function):
    """The OpOverload that an argument called `op` means: itself, a custom operator, or a name."""
    op = getattr(op, "_opoverload", op)
    if isinstance(op, _C.OpOverload):
        return op
    if not isinstance(op, str):
        raise ValueError(f"{function}({op}): got unexpected type for op: {type(op)}")
    namespace, name, overload = split_name(op)
    found = _C._overload(namespace, name, overload)
    if found is None:
        raise RuntimeError(f"operator {op} does not exist")
    return found


def split_name(name):
    """(namespace, name, overload) of "namespace::name.overload"; ValueError for other texts."""
    namespace, colons, rest = name.partition("::")
    if not colons or not namespace or not rest:
        raise ValueError(f"expected a name of the form namespace::name, as mine::sin; got {name}")
    name, _, overload = rest.partition(".")
    return namespace, name, "" if overload == "default" else overload
