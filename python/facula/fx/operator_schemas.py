"""Signatures of operators, and calls brought into the form that a signature has."""

from __future__ import annotations

import inspect
import numbers
import types
import typing
from typing import Any, NamedTuple

import facula

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

_TYPES = {
    "Tensor": facula.Tensor,
    "Scalar": numbers.Number,
    "int": int,
    "SymInt": int,
    "float": float,
    "bool": bool,
    "str": str,
    "complex": complex,
    "ScalarType": int,
    "Device": facula.device,
    "Layout": int,
    "MemoryFormat": int,
    "Generator": facula.Generator,
}


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call, by position and by keyword."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _python_type(text):
    """The Python type of a schema's type: `int[2]?` is Optional[List[int]]."""
    text = str(text)
    if text.endswith("?"):
        return typing.Optional[_python_type(text[:-1])]  # noqa: UP045
    if text.endswith("]"):
        return typing.List[_python_type(text[: text.rindex("[")])]  # noqa: UP006
    return _TYPES.get(text, Any)


def _default(argument):
    if not argument.has_default_value():
        return inspect.Parameter.empty
    text, value = str(argument.type).rstrip("?"), argument.default_value
    size = text[text.rindex("[") + 1 : -1] if text.endswith("]") else ""
    is_one_for_all = size.isdigit() and isinstance(value, (int, float))
    return [value] * int(size) if is_one_for_all else value


def _signature(schema):
    """The inspect.Signature of a FunctionSchema."""
    kinds = inspect.Parameter
    parameters = []
    for argument in schema.arguments:
        # `from` is a keyword: no Python call can name it.
        name = {"self": "input", "from": "from_"}.get(argument.name, argument.name)
        is_first = name == "from_" or argument.name == "self"
        kind = kinds.POSITIONAL_ONLY if name == "from_" else kinds.POSITIONAL_OR_KEYWORD
        if argument.kwarg_only:
            kind = kinds.KEYWORD_ONLY
        default = kinds.empty if is_first else _default(argument)
        annotation = _python_type(argument.type)
        parameters.append(kinds(name, kind, default=default, annotation=annotation))
    returned = [_python_type(result.type) for result in schema.returns]
    annotation = returned[0] if len(returned) == 1 else tuple(returned) or None
    try:
        return inspect.Signature(parameters, return_annotation=annotation)
    except ValueError:  # a default before an argument that must be given
        plain = [p.replace(default=kinds.empty) for p in parameters]
        return inspect.Signature(plain, return_annotation=annotation)


def _schemas(op):
    """The schemas behind a function, as a list; None for a function that is no operator."""
    if isinstance(op, facula._C.OpOverload):
        return [op._schema]
    if not isinstance(op, facula._C.OpOverloadPacket):
        module = getattr(op, "__module__", None)
        places = (facula.__name__, f"{facula.__name__}._C._nn")
        name = getattr(op, "__name__", "")
        if module not in places or isinstance(op, types.FunctionType) or not name.isidentifier():
            return None
        op = getattr(facula.ops.aten, name, None)
        if op is None:
            return None
    return [getattr(op, name)._schema for name in op.overloads()]


def get_signature_for_torch_op(op, return_schemas=False):
    """The signatures of an operator, one for each overload.

    Args:
        op (callable): `facula.add`, `facula.ops.aten.add`, `facula.ops.aten.add.Tensor`.
        return_schemas (bool): whether the schemas are given as well.

    Returns:
        list[inspect.Signature] | None: None for a function that is no operator.

    Example:
        >>> [str(s) for s in get_signature_for_torch_op(facula.ops.aten.cat.default)]
        ['(tensors: List[facula.Tensor], dim: int = 0) -> facula.Tensor']
    """
    schemas = _schemas(op)
    signatures = None if schemas is None else [_signature(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def check_for_mutable_operation(target, args, kwargs):
    """Refuse a call that writes to its arguments.

    Args:
        target (callable): what is called.
        args (tuple), kwargs (dict): its arguments.

    Raises:
        RuntimeError: the overload that takes these arguments writes to one.
    """
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    matching = []
    for signature, schema in zip(signatures or (), schemas or (), strict=True):
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        matching.append(schema)
    if matching and all(schema.is_mutable for schema in matching):
        raise RuntimeError(f"trace: operators must not write to arguments; got {matching[0]}")


def create_type_hint(x):
    """The type of a list or tuple of types; anything else stays what it is.

    Args:
        x: types, nested in lists and tuples.
    """
    if not isinstance(x, (list, tuple)):
        return x
    kind = list if isinstance(x, list) else tuple
    inner = [create_type_hint(item) for item in x]
    common = Any
    for candidate in inner:
        if all(_is_subclass(item, candidate) for item in inner):
            common = candidate
    return list[common] if kind is list else tuple[common, ...]


def _is_subclass(a, b):
    return a is b or (isinstance(a, type) and isinstance(b, type) and issubclass(a, b))


def _is_union(kind):
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def type_matches(signature_type, argument_type):
    """Whether an argument of a type can be given where a signature has another.

    Args:
        signature_type, argument_type: the types.

    Returns:
        bool
    """
    if signature_type is argument_type or signature_type == argument_type:
        return True
    if _is_union(signature_type):
        return any(type_matches(part, argument_type) for part in typing.get_args(signature_type))
    if typing.get_origin(signature_type) is list:
        inner = typing.get_args(signature_type)[0]
        if inner is int and argument_type is int:
            return True  # int[2] takes a single int
        origin = typing.get_origin(argument_type)
        if origin not in (list, tuple):
            return False
        parts = [part for part in typing.get_args(argument_type) if part is not ...]
        return all(_is_subclass(part, inner) for part in parts)
    if signature_type is numbers.Number and argument_type in (int, float, bool, complex):
        return True
    return _is_subclass(argument_type, signature_type)


def _normalized(signature, args, kwargs, only_kwargs):
    """The call in a signature's form; None where a signature has *args or **kwargs."""
    supported = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind not in supported for p in signature.parameters.values()):
        # Random operators with `from` have a second overload without it.
        if list(signature.parameters) != ["input", "from", "to", "generator"]:
            return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    by_place, by_name = [], {}
    for place, name in enumerate(signature.parameters):
        if not only_kwargs and place < len(args):
            by_place.append(bound.arguments[name])
        else:
            by_name[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(by_place), by_name)


def _binds(signature, args, kwargs):
    try:
        return signature.bind(*args, **kwargs)
    except TypeError:
        return None


def normalize_function(
    target,
    args,
    kwargs=None,
    arg_types=None,
    kwarg_types=None,
    normalize_to_only_use_kwargs=False,
):
    """A call in the form of the function's signature, with its defaults.

    Args:
        target (callable): an operator or a function of `nn.functional`.
        args (tuple), kwargs (dict): the arguments.
        arg_types (tuple[type]), kwarg_types (dict[str, type]): choose among overloads.
        normalize_to_only_use_kwargs (bool): whether all arguments go by keyword.

    Returns:
        ArgsKwargsPair | None: None where no signature is known or none takes the arguments.

    Raises:
        RuntimeError: several overloads take the arguments, and types do not decide.

    Example:
        >>> normalize_function(facula.flatten, ("x", 1), normalize_to_only_use_kwargs=True).kwargs
        {'input': 'x', 'start_dim': 1, 'end_dim': -1}
    """
    kwargs = kwargs or {}
    module = getattr(target, "__module__", None)
    if module in (f"{facula.__name__}.nn.functional", f"{facula.__name__}.functional"):
        signature = inspect.signature(target)
        if _binds(signature, args, kwargs) is None:
            return None
        return _normalized(signature, args, kwargs, normalize_to_only_use_kwargs)
    signatures = get_signature_for_torch_op(target) if callable(target) else None
    matching = [s for s in signatures or () if _binds(s, args, kwargs) is not None]
    if not matching:
        return None
    if len(matching) > 1:
        matching = _by_types(target, matching, args, kwargs, arg_types, kwarg_types)
    return _normalized(matching[0], args, kwargs, normalize_to_only_use_kwargs)


def _by_types(target, signatures, args, kwargs, arg_types, kwarg_types):
    shown = "\n".join(map(str, signatures))
    name = getattr(target, "__name__", target)
    if arg_types is None and kwarg_types is None:
        raise RuntimeError(f"normalize_function(): {name} needs types to choose among\n{shown}")
    arg_types, kwarg_types = arg_types or (), kwarg_types or {}
    for signature in signatures:
        bound = _binds(signature, arg_types, kwarg_types)
        if bound is not None and all(
            type_matches(signature.parameters[key].annotation, kind)
            for key, kind in bound.arguments.items()
        ):
            return [signature]
    raise RuntimeError(f"normalize_function(): no overload of {name} has these types:\n{shown}")


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """The call of a module of `nn` in the form of its forward's signature.

    Args:
        root (Module): has the module.
        target (str): its dotted name.
        args (tuple), kwargs (dict): the arguments.
        normalize_to_only_use_kwargs (bool): whether all arguments go by keyword.

    Returns:
        ArgsKwargsPair | None: None for classes that are not of `nn`.

    Raises:
        RuntimeError: there is no such module.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"normalize_module(): root must have {target}") from error
    kind = type(module)
    if getattr(facula.nn, kind.__name__, None) is not kind:
        return None
    signature = inspect.signature(module.forward)
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
