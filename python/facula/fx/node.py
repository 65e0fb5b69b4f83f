"""One step of a graph: what is called, with which arguments, and who uses the result."""

from __future__ import annotations

import builtins
import types

from facula.fx.immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

_LEGAL_OPS = (
    "placeholder",
    "call_method",
    "call_module",
    "call_function",
    "get_attr",
    "output",
    "root",
)
_side_effectful_functions = set()


def has_side_effect(fn):
    """Mark a function: nodes that call it stay though nobody uses them; returns the function."""
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
    """`fn` of each Node in nested arguments; returns the same nest."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _get_qualified_name(func):
    """The name by which code of a graph calls a function, as `module.name`."""
    name = getattr(func, "__name__", None) or type(func).__name__
    if getattr(builtins, name, None) is func:
        return name
    module = getattr(func, "__module__", None) or ""
    if isinstance(func, types.MethodDescriptorType):
        owner = func.__objclass__
        return f"{owner.__module__}.{owner.__qualname__}.{name}"
    module = {"_operator": "operator"}.get(module, module)
    if type(func).__name__ in ("OpOverload", "OpOverloadPacket"):
        return f"{module.partition('.')[0]}.ops.{func}"
    return f"{module}.{getattr(func, '__qualname__', name) if '<' not in name else name}"


class Node:
    """One step of a Graph.

    Attributes:
        op (str): "placeholder", "get_attr", "call_function", "call_method", "call_module" or
            "output".
        target: what is called: a function, or the name of a method, module, attribute or argument.
        args, kwargs: the arguments, with Nodes for results of earlier steps.
        users (dict[Node, None]): the steps that take the result.
        meta (dict): room for whoever works on the graph.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _LEGAL_OPS:
            raise AssertionError(f"Node: op must be one of {', '.join(_LEGAL_OPS)}; got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} "
                "but a Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} "
                "but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type, self.users, self.meta = return_type, {}, {}
        self._input_nodes, self._erased = {}, False
        self._prev = self._next = self
        self._set_arguments(args, kwargs)

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
        self._set_arguments(value, self._kwargs)

    @property
    def kwargs(self):
        """The arguments by keyword; setting them updates the users of other nodes."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._set_arguments(self._args, value)

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

    def _set_arguments(self, args, kwargs):
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    def update_arg(self, idx, arg):
        """Replace the positional argument at an index."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Put a positional argument before the one at an index."""
        args = list(self.args)
        args.insert(idx, arg)
        self.args = tuple(args)

    def update_kwarg(self, key, arg):
        """Replace an argument by keyword."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input, new_input):
        """Take another node's result wherever `old_input` is an argument."""

        def replace(node):
            return new_input if node is old_input else node

        self._set_arguments(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    def replace_all_uses_with(
        self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False
    ):
        """Let the users of this node take another's result; returns the users as a list.

        Args:
            replace_with (Node): what they take.
            delete_user_cb (callable): whether a user changes over.
            propagate_meta (bool): whether `meta` goes over, too.
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random=True):
        """Whether the step does more than give a result, and has to stay."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effectful_functions
        if self.op == "call_module":
            module = self.graph.owning_module
            return bool(getattr(module and module.get_submodule(self.target), "_is_impure", False))
        return False

    def prepend(self, x):
        """Move another node before this one."""
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x):
        """Move another node behind this one."""
        self._next.prepend(x)

    def _unlink(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def format_node(self, placeholder_names=None, maybe_return_typename=None, **options):
        """The step as a line of text, as printed graphs have it."""
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            users = len(self.users)
            return (
                f"%{self.name} : [num_users={users}] = placeholder[target={self.target}]{default}"
            )
        if self.op == "output":
            return f"return {self.args[0]}"
        target = self.target
        if self.op == "call_function":
            target = _get_qualified_name(target)
            target = f"builtins.{target}" if "." not in target else target
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"

    def __repr__(self):
        return self.name

    def __lt__(self, other):
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False


def _shown(a):
    """Arguments as printed graphs have them: nodes with a percent sign, texts bare."""
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple):
        return "(" + ", ".join(map(_shown, a)) + ("," if len(a) == 1 else "") + ")"
    if isinstance(a, list):
        return "[" + ", ".join(map(_shown, a)) + "]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{key}: {_shown(value)}" for key, value in a.items()) + "}"
    if isinstance(a, slice):
        return f"slice({_shown(a.start)}, {_shown(a.stop)}, {_shown(a.step)})"
    return str(a)
