"""Segments as graphs: modules of torch-level calls, as backends take them."""

from __future__ import annotations

import inspect
import operator
import re

import facula
from facula import _C
from facula._dynamo.segment import Input, Number, Result
from facula.fx import Graph, GraphModule
from facula.utils._pytree import tree_unflatten

# Methods that operators call, for the number of arguments that operators have.
_OPERATORS = {
    "__getitem__": operator.getitem,
    "__setitem__": operator.setitem,
    "add": operator.add,
    "div": operator.truediv,
    "eq": operator.eq,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "matmul": operator.matmul,
    "mul": operator.mul,
    "ne": operator.ne,
    "sub": operator.sub,
    "true_divide": operator.truediv,
}
_METHOD_TYPES = ("method_descriptor", "wrapper_descriptor")


class SegmentGraph:
    """Writes the graph of a segment.

    Args:
        segment (Segment): what was recorded.
        outputs (list of Result): what the graph returns.
        numbers (list of int): places of constants that become arguments.
        names (dict): id of a Tensor to the name that a program has for it.
    """

    def __init__(self, segment, outputs, numbers, names):
        self._segment = segment
        self._graph = Graph()
        self._nodes = {}  # Input, Result or Number -> Node
        for at, tensor in enumerate(segment.inputs):
            name = names.get(id(tensor), f"L_stack{at}_")
            node = self._placeholder(Input(at), name, type(tensor), segment.examples[Input(at)])
            node.meta["tensor_dict"] = {}
        for place in numbers:
            value = segment.values[place]
            self._placeholder(Number(place), f"s{place}", type(value), value)
        self._used = {*outputs, *_places_in([(c.args, c.kwargs) for c in segment.calls])}
        self._write_calls()
        self._graph.output(tuple(self._nodes[place] for place in outputs))

    def module(self):
        """The GraphModule."""
        module = GraphModule(facula.nn.Module(), self._graph)
        module.compile_subgraph_reason = None
        return module

    def _placeholder(self, place, name, kind, value):
        node = self._graph.create_node("placeholder", name, (), {}, name.lower(), kind)
        node.meta["example_value"] = value
        self._nodes[place] = node
        return node

    # --- calls

    def _write_calls(self):
        grad, autocast = self._segment.state
        open_autocast = None
        for call in self._segment.calls:
            if call.state[1] != autocast:
                open_autocast = self._change_autocast(open_autocast, call.state[1])
                autocast = call.state[1]
            if call.state[0] != grad:
                grad = call.state[0]
                self._graph.call_function(_C._set_grad_enabled, (grad,))
            self._write(call)
        if open_autocast is not None:
            self._change_autocast(open_autocast, self._segment.state[1])
        if grad != facula.is_grad_enabled():
            self._graph.call_function(_C._set_grad_enabled, (not grad,))

    def _change_autocast(self, opened, wanted):
        from facula.amp import autocast_mode

        if opened is not None:
            self._graph.call_function(autocast_mode._exit_autocast, (opened,))
        if wanted == self._segment.state[1]:
            return None
        wanted = wanted or ("cpu", facula.bfloat16, False, None)
        return self._graph.call_function(autocast_mode._enter_autocast, wanted)

    def _write(self, call):
        args, kwargs = self._thawed(call.args), self._thawed(call.kwargs)
        node = self._call_node(call.function, args, kwargs)
        file, line = call.line
        node.meta["stack_trace"] = f'  File "{file}", line {line}'
        spec, places = call.results
        paths = _paths(spec)
        for index, place in places:
            if place in self._nodes or (paths[index] and place not in self._used):
                continue
            part = node
            for key in paths[index]:
                part = self._item(part, key)
            self._nodes[place] = part
            part.meta["example_value"] = self._segment.examples[place]

    def _item(self, node, key):
        for user in node.users:
            if user.target is operator.getitem and user.args == (node, key):
                return user
        return self._graph.call_function(operator.getitem, (node, key))

    def _call_node(self, function, args, kwargs):
        if type(function).__name__ not in _METHOD_TYPES:
            return self._graph.call_function(function, args, kwargs)
        name = function.__name__
        if name in _OPERATORS and not kwargs and len(args) == (3 if name == "__setitem__" else 2):
            return self._graph.call_function(_OPERATORS[name], args)
        return self._graph.call_method(name, args, kwargs)

    def _thawed(self, value):
        """Recorded arguments with Nodes in them."""
        if isinstance(value, (Input, Result)):
            return self._nodes[value]
        if isinstance(value, Number):
            node = self._nodes.get(value)
            return self._segment.values[value.place] if node is None else node
        if type(value) in (tuple, list):
            return type(value)(self._thawed(part) for part in value)
        if type(value) is dict:
            return {name: self._thawed(part) for name, part in value.items()}
        if type(value) is slice:
            parts = (value.start, value.stop, value.step)
            return slice(*(self._thawed(part) for part in parts))
        return value


def _places_in(value):
    """The Inputs and Results in recorded arguments."""
    if isinstance(value, (Input, Result)):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _places_in(part)
    elif isinstance(value, dict):
        yield from _places_in(list(value.values()))


def _paths(spec):
    """For each leaf of a nest of tuples, lists and dicts the keys that lead to it."""
    places = tree_unflatten(list(range(spec.num_leaves)), spec)
    found = {}

    def visit(value, path):
        if isinstance(value, dict):
            for key, part in value.items():
                visit(part, (*path, key))
        elif isinstance(value, (tuple, list)):
            for key, part in enumerate(value):
                visit(part, (*path, key))
        else:
            found[value] = path

    visit(places, ())
    return found


# --- names of inputs


def names_of_tensors(function, args, kwargs):
    """The names that a function's program has for tensors, by id: `L_x_`, `L_self_parameters_w_`.

    Args:
        function (callable): what is called, perhaps a Module, with `args` and `kwargs`.
    """
    found = {}
    try:
        named = inspect.signature(_code_of(function)).bind(*_with_self(function), *args, **kwargs)
    except (TypeError, ValueError):
        return found
    for name, value in named.arguments.items():
        _name(value, f"L_{name}_", found)
    return found


def _code_of(function):
    if isinstance(function, facula.nn.Module):
        return type(function).forward
    return getattr(function, "__func__", function)


def _with_self(function):
    if isinstance(function, facula.nn.Module):
        return (function,)
    owner = getattr(function, "__self__", None)
    return (owner,) if inspect.ismethod(function) else ()


def _name(value, name, found):
    if isinstance(value, facula.Tensor):
        found.setdefault(id(value), re.sub(r"\W", "_", name))
    elif isinstance(value, facula.nn.Module):
        for path, module in value.named_modules():
            prefix = name + "".join(f"modules_{part}_" for part in path.split(".") if part)
            for kind in ("parameters", "buffers"):
                for key, tensor in module.__dict__[f"_{kind}"].items():
                    if tensor is not None:
                        found.setdefault(id(tensor), f"{prefix}{kind}_{key}_")
    elif isinstance(value, (tuple, list)):
        for at, part in enumerate(value):
            _name(part, f"{name}{at}_", found)
    elif isinstance(value, dict):
        for key, part in value.items():
            _name(part, f"{name}{key}_", found)
