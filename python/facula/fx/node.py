"""One step of a graph: what is called, with which arguments, and who uses the result."""

from __future__ import annotations

import builtins
import inspect
import operator
import types
import typing
from collections.abc import Callable

import facula
from facula.fx.immutable_collections import immutable_dict, immutable_list

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = typing.Union[Callable, str]
Argument = typing.Any
BaseArgumentTypes = typing.Union[
    str,
    int,
    float,
    bool,
    complex,
    facula.dtype,
    facula.Tensor,
    facula.device,
    facula.memory_format,
    facula.layout,
    facula.SymInt,
    facula.SymBool,
    facula.SymFloat,
]
base_types = BaseArgumentTypes.__args__

_legal_ops = dict.fromkeys(
    ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
)
_side_effectful_functions = {
    operator.setitem,
    facula._assert,
    facula._assert_async,
    facula._C._set_grad_enabled,
}


def has_side_effect(fn):
    """Mark a function: nodes that call it stay though nobody uses them; returns the function.

    Args:
        fn (callable): the function.
    """
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a, fn):
    """`fn` of each leaf of nested tuples, lists, dicts and slices; returns the same nest."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(item, fn) for item in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """`fn` of each Node in nested arguments; returns the same nest.

    Raises:
        AssertionError: `fn` cannot be called.
    """
    if not callable(fn):
        raise AssertionError(f"map_arg(): fn must be callable; got {type(fn).__name__}")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _type_repr(obj):
    """A type as annotations are printed: `int`, `torch.Tensor`, `typing.List[int]`."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        return obj.__qualname__ if obj.__module__ == "builtins" else _of_module(obj)
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


def _of_module(obj):
    return f"{obj.__module__}.{obj.__qualname__}"


def _get_qualified_name(func):
    """The name by which code of a graph calls a function, as `module.name`."""
    name = getattr(func, "__name__", None) or type(func).__name__
    if getattr(builtins, name, None) is func:
        return name
    if isinstance(func, types.MethodDescriptorType):
        owner = func.__objclass__
        return f"{owner.__module__}.{owner.__qualname__}.{name}"
    module = getattr(func, "__module__", None) or ""
    if type(func).__name__ == "HigherOrderOperator":
        return f"{module}.{name}"
    if type(func).__name__ in ("OpOverload", "OpOverloadPacket"):
        return f"{module.partition('.')[0]}.ops.{func}"
    if name == "<lambda>":
        # Nothing else tells lambdas of a module from one another.
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except OSError as error:
            raise RuntimeError("_get_qualified_name(): this lambda has no source") from error
        return f"{module}.{name}"
    if isinstance(func, types.BuiltinMethodType) and inspect.isclass(func.__self__):
        return f"{func.__self__.__module__}.{func.__self__.__name__}.{name}"
    is_own = module.partition(".")[0] == facula.__name__
    return f"{module}.{getattr(func, '__qualname__', name) if is_own else name}"


def _format_arg(arg):
    """Arguments as printed graphs have them: nodes with a percent sign, texts bare."""
    if isinstance(arg, Node):
        return f"%{arg}"
    if isinstance(arg, list):
        return "[" + ", ".join(map(_format_arg, arg)) + "]"
    if isinstance(arg, tuple):
        return "(" + ", ".join(map(_format_arg, arg)) + ("," if len(arg) == 1 else "") + ")"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return str(arg)


class Node:
    """One step of a Graph.

    Attributes:
        op (str): "placeholder", "get_attr", "call_function", "call_method", "call_module" or
            "output".
        name (str): its name, which no other node of the graph has.
        target: what is called: a function, or the name of a method, module, attribute or argument.
        args, kwargs: the arguments, with Nodes for results of earlier steps.
        type: the annotation of the value in generated code, or None.
        users (dict[Node, None]): the steps that take the result.
        meta (dict): room for whoever works on the graph.

    Example:
        >>> graph = facula.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(facula.relu, (x,))
        >>> y.format_node()
        '%relu : [num_users=0] = call_function[target=facula.relu](args = (%x,), kwargs = {})'
    """

    __slots__ = (
        "graph",
        "name",
        "op",
        "target",
        "type",
        "users",
        "meta",
        "__dict__",
        "__weakref__",
    )
    _repr_fn = None

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _legal_ops:
            raise AssertionError(f"Node: op must be one of {', '.join(_legal_ops)}; got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node {name} of {graph}: the target of call_function must be callable; got "
                f"{type(target).__name__}"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node {name} of {graph}: the target of {op} must be a str; got "
                f"{type(target).__name__}"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type, self.users, self.meta = return_type, {}, {}
        self._input_nodes, self._erased, self._position = {}, False, 0
        self._prev = self._next = self
        self._update_args_kwargs(args, kwargs)

    @property
    def next(self):
        """The step after this one."""
        return self._next

    @property
    def prev(self):
        """The step before this one."""
        return self._prev

    @property
    def args(self):
        """The positional arguments; setting them updates the users of other nodes."""
        return self._args

    @args.setter
    def args(self, value):
        self._update_args_kwargs(value, self._kwargs)

    @property
    def kwargs(self):
        """The arguments by keyword; setting them updates the users of other nodes."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._update_args_kwargs(self._args, value)

    @property
    def all_input_nodes(self):
        """The nodes among the arguments, each once, as a list."""
        return list(self._input_nodes)

    @property
    def stack_trace(self):
        """Where the step was recorded, as text, if the tracer kept it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def _update_args_kwargs(self, args, kwargs):
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(args, note)
        self._kwargs = map_arg(kwargs, note)

    def update_arg(self, idx, arg):
        """Replace the positional argument at an index.

        Args:
            idx (int): the index.
            arg: the new argument.
        """
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Put a positional argument before the one at an index.

        Raises:
            AssertionError: the index is beyond the end.
        """
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_arg(): idx must be in 0..{len(self.args)}; got {idx}")
        args = list(self.args)
        args.insert(idx, arg)
        self.args = tuple(args)

    def update_kwarg(self, key, arg):
        """Replace an argument by keyword."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input, new_input):
        """Take another node's result wherever `old_input` is an argument."""
        self._tell_replace_hooks(old_input, new_input)
        self._take_instead(old_input, new_input)

    def _take_instead(self, old_input, new_input):
        def replace(node):
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    def _tell_replace_hooks(self, old, new):
        module = self.graph.owning_module
        for hook in getattr(module, "_replace_hooks", None) or ():
            hook(old=old, new=new.name if isinstance(new, Node) else new, user=self)

    def replace_all_uses_with(self, replace_with, delete_user_cb=None, *, propagate_meta=False):
        """Let the users of this node take another's result; returns the former users as a list.

        Args:
            replace_with (Node): what they take.
            delete_user_cb (callable): whether a user changes over; all do if None.
            propagate_meta (bool): whether `meta` goes over, too.

        Raises:
            AssertionError: `meta` is to go over and `replace_with` has some.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "replace_all_uses_with(): propagate_meta needs a node without meta; "
                    f"{replace_with} has {', '.join(map(str, replace_with.meta))}"
                )
            replace_with.meta.update(self.meta)
        changed = [u for u in list(self.users) if delete_user_cb is None or delete_user_cb(u)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random=True):
        """Whether the step does more than give a result, and has to stay.

        Args:
            impure_random (bool): whether drawing random numbers counts.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions:
                return True
            return _writes_or_draws(self.target, impure_random)
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("is_impure(): the graph of a call_module needs a module")
            return bool(getattr(module.get_submodule(self.target), "_is_impure", False))
        return False

    def normalized_arguments(
        self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False
    ):
        """The arguments in the order and with the names of the target's signature.

        Args:
            root (Module): where targets of call_module are found.
            arg_types (tuple[type]): types that choose among several signatures.
            kwarg_types (dict[str, type]): likewise by keyword.
            normalize_to_only_use_kwargs (bool): whether all of them go by keyword.

        Returns:
            ArgsKwargsPair | None: None where no signature is known.

        Raises:
            RuntimeError: several signatures serve, and no types were given.
        """
        from facula.fx.operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target,
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    def prepend(self, x):
        """Move another node of this graph before this one.

        Raises:
            AssertionError: it is of another graph.
        """
        if x.graph is not self.graph:
            raise AssertionError(f"prepend(): {x} must be of the graph that has {self}")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._is_numbered = False

    def append(self, x):
        """Move another node of this graph behind this one."""
        self._next.prepend(x)

    def _unlink(self):
        self._prev._next, self._next._prev = self._next, self._prev

    _remove_from_list = _unlink

    def _rename(self, candidate):
        """Take another name, made unique in the graph."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)

    def _pretty_print_target(self, target):
        if isinstance(target, str):
            return target
        name = _get_qualified_name(target)
        if name.startswith("_operator."):
            return name[1:]
        return f"builtins.{name}" if getattr(builtins, name, None) is target else name

    def format_node(
        self,
        placeholder_names=None,
        maybe_return_typename=None,
        *,
        include_tensor_metadata=False,
    ):
        """The step as a line of text, as printed graphs have it.

        Args:
            placeholder_names (list[str]): collects the names of arguments where it has any.
            maybe_return_typename (list[str]): its first item becomes the output's annotation.
            include_tensor_metadata (bool): whether dtype, sizes, strides and device are shown.
        """
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        if self.op == "placeholder" and placeholder_names:
            annotation = f": {_type_repr(self.type)}" if self.type else ""
            placeholder_names.append(self.target + annotation)
        shown = f"{_type_repr(self.type)} " if self.type else ""
        if include_tensor_metadata and self.op != "placeholder":
            from facula.fx._codegen import tensor_annotation

            text = tensor_annotation(self, True, True)
            shown = f'Tensor "{text}"' if text else shown
        target = self._pretty_print_target(self.target)
        head = f"%{self.name} : {shown}[num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "get_attr":
            return head
        if self.op == "placeholder":
            return head + (f"(default={self.args[0]})" if self.args else "")
        return f"{head}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def __repr__(self):
        return self.name if self._repr_fn is None else self._repr_fn(self)

    @property
    def _sort_key(self):
        self.graph._number()
        return self._position

    def __lt__(self, other):
        return self._sort_key < other._sort_key

    def __gt__(self, other):
        return self._sort_key > other._sort_key

    def __le__(self, other):
        return self is other or self < other

    def __ge__(self, other):
        return self is other or self > other

    def __reduce__(self):
        return _node_at, (self.graph, list(self.graph.nodes).index(self))


def _node_at(graph, index):
    return list(graph.nodes)[index]


def _writes_or_draws(target, impure_random):
    """Whether an operator's schema says that it writes, or its record that it is random."""
    if isinstance(target, facula._C.OpOverload):
        draws = facula.Tag.nondeterministic_seeded in target.tags
        return bool(target._schema.is_mutable) or (impure_random and draws)
    packet = _packet_of(target)
    if packet is None:
        return False
    overloads = (getattr(packet, name) for name in packet.overloads())
    return any(facula.Tag.nondeterministic_seeded in overload.tags for overload in overloads)


def _packet_of(target):
    """The operator behind a function of the package itself (`torch.rand`), or None."""
    name = getattr(target, "__name__", "")
    if getattr(target, "__module__", None) != facula.__name__ or not name.isidentifier():
        return None
    if isinstance(target, types.FunctionType):
        return None
    return getattr(facula.ops.aten, name, None)
