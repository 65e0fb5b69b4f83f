"""Operators of one's own by the names that PyTorch had before `facula.library`."""

from __future__ import annotations

from facula import library
from facula.library import get_ctx, infer_schema

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "infer_schema"]


def custom_op(qualname, func_or_schema=None):
    """Define an operator by its schema, or by the annotations of a function.

    Args:
        qualname (str): "namespace::name".
        func_or_schema (str or function): "(Tensor x) -> Tensor", or a function with annotations
            and no body; a decorator of one where it is not given.

    Raises:
        ValueError: a name without a namespace.
        RuntimeError: a malformed schema, a name that is taken.
    """
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return None

    def define(function):
        library.define(qualname, infer_schema(function, mutates_args=()))
        return function

    return define if func_or_schema is None else define(func_or_schema)


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """Put in a kernel of an operator for device types; a decorator where `func` is not given."""

    def register(function):
        library.impl(qualname, device_types, function)
        return function

    return register if func is None else register(func)


def impl_abstract(qualname, *, func=None):
    """Put in an operator's shape rule; a decorator where `func` is not given."""
    return library.register_fake(qualname, func)
