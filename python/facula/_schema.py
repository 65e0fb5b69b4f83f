"""Schemas of operators as Python objects."""

from __future__ import annotations


class Argument:
    """An argument or result of an operator: name, type (text), default and aliasing."""

    __slots__ = (
        "name",
        "type",
        "kwarg_only",
        "default_value",
        "_has_default",
        "alias_info",
        "is_write",
    )

    def __init__(self, name, type_text, kwarg_only, default, has_default, alias_set, is_write):
        self.name, self.type, self.kwarg_only = name, type_text, kwarg_only
        self.default_value, self._has_default = default, has_default
        self.is_write = is_write
        self.alias_info = AliasInfo(alias_set, is_write) if alias_set or is_write else None

    @property
    def real_type(self):
        return self.type

    def has_default_value(self):
        """Whether the argument may be left out."""
        return self._has_default

    def __repr__(self):
        return f"Argument({self.name}: {self.type})"


class AliasInfo:
    """Which alias sets a value is in, and whether it is written."""

    __slots__ = ("before_set", "is_write")

    def __init__(self, bits, is_write):
        self.before_set = {chr(ord("a") + i) for i in range(26) if bits >> i & 1}
        self.is_write = is_write

    @property
    def after_set(self):
        return self.before_set


class FunctionSchema:
    """The schema of one overload; `str()` gives PyTorch's text."""

    def __init__(self, overload, text):
        self.name = overload.name().split(".")[0]
        self.overload_name = "" if overload._overloadname == "default" else overload._overloadname
        self.arguments = [Argument(*facts) for facts in overload._arguments()]
        self.returns = [Argument(*facts) for facts in overload._returns()]
        self._text = text

    @property
    def is_mutable(self):
        return any(argument.is_write for argument in self.arguments)

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self):
        return hash(self._text)
