"""Which steps of a graph a back end can take."""

from __future__ import annotations

import abc
import typing
from collections.abc import Callable

import facula
from facula.fx.node import Node
from facula.fx.passes.shape_prop import TensorMetadata
from facula.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

TargetTypeName = str
SupportedArgumentDTypes = typing.Union[tuple, None]
SupportDict = typing.Mapping[str, SupportedArgumentDTypes]
IsNodeSupported = Callable[[typing.Mapping, Node], bool]


def _dtypes_of(node):
    """The dtypes of a node's value, as a list; [None] where they are not known."""
    meta = node.meta.get("tensor_meta")
    if meta is None:
        value = node.meta.get("val")
        return [value.dtype] if isinstance(value, facula.Tensor) else [None]
    if isinstance(meta, TensorMetadata):
        return [meta.dtype]
    return [part.dtype for part in meta if isinstance(part, TensorMetadata)]


class OperatorSupportBase(abc.ABC):
    """Says whether a back end takes a step."""

    @abc.abstractmethod
    def is_node_supported(self, submodules, node):
        """Whether it does.

        Args:
            submodules (dict[str, Module]): the modules by name.
            node (Node): the step.
        """


class OperatorSupport(OperatorSupportBase):
    """Takes the steps whose targets a table has, with arguments of the dtypes that it says.

    Args:
        support_dict (dict[str, tuple | None]): by name of the target, as `get_node_target` gives
            it, (dtypes of each positional argument, by keyword their dtypes); None: any.

    Example:
        >>> graph = facula.fx.symbolic_trace(lambda x: facula.relu(x)).graph
        >>> relu = graph.find_nodes(op="call_function", target=facula.relu)[0]
        >>> OperatorSupport({"facula.relu": None}).is_node_supported({}, relu)
        True
    """

    _support_dict: SupportDict = {}

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or type(self)._support_dict

    def is_node_supported(self, submodules, node):
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        by_place, by_name = wanted
        pairs = [(dtypes, node.args[i]) for i, dtypes in enumerate(by_place) if i < len(node.args)]
        pairs += [(dtypes, node.kwargs[k]) for k, dtypes in by_name.items() if k in node.kwargs]
        return all(
            _dtypes_of(arg)[0] in dtypes
            for dtypes, arg in pairs
            if dtypes and isinstance(arg, Node)
        )


class _ByFunction(OperatorSupportBase):
    def __init__(self, function):
        self._function = function

    def is_node_supported(self, submodules, node):
        return self._function(submodules, node)


def create_op_support(is_node_supported):
    """An OperatorSupportBase of a function.

    Args:
        is_node_supported (callable): of the modules by name and a Node, whether it is taken.
    """
    return _ByFunction(is_node_supported)


def chain(*op_support):
    """Takes what all of these take."""

    def is_supported(submodules, node):
        return all(support.is_node_supported(submodules, node) for support in op_support)

    return create_op_support(is_supported)


def any_chain(*op_support):
    """Takes what any of these takes."""

    def is_supported(submodules, node):
        return any(support.is_node_supported(submodules, node) for support in op_support)

    return create_op_support(is_supported)


class OpSupports:
    """Rules for `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """Takes steps none of whose arguments has a dtype.

        Args:
            dtype (facula.dtype): the dtype.
        """

        def is_supported(submodules, node):
            return not any(dtype in _dtypes_of(arg) for arg in node.all_input_nodes)

        return create_op_support(is_supported)

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """Takes steps whose names are not in a set."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)
