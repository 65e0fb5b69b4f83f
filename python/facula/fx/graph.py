"""A graph: steps in the order in which they run, and the Python code that they are written as."""

from __future__ import annotations

import builtins
import keyword
import operator
import re
from contextlib import contextmanager
from typing import NamedTuple

import facula
from facula.fx.node import Node, _get_qualified_name, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

_BINARY = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lt: "<",
    operator.gt: ">",
    operator.le: "<=",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
_UNARY = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


class PythonCode(NamedTuple):
    """A function's source and the objects that its names mean."""

    src: str
    globals: dict


class _Names:
    """Names that are given once."""

    def __init__(self):
        self._used = {}

    def create(self, candidate):
        """A name that is free, and a valid identifier that hides no builtin."""
        name = re.sub(r"\W", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        match = re.fullmatch(r"(.*)_(\d+)", name)
        base, number = (match[1], int(match[2])) if match else (name, 0)
        while name in self._used or keyword.iskeyword(name) or hasattr(builtins, name):
            number += 1
            name = f"{base}_{number}"
        self._used[name] = None
        return name


class CodeGen:
    """How a graph is written as Python; subclasses write it differently."""

    def gen_fn_def(self, free_vars, maybe_return_annotation=""):
        """The line that begins the function."""
        names = ["self", *free_vars] if not free_vars or free_vars[0] != "self" else free_vars
        return f"def forward({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args):
        """The line that ends the function."""
        return f"return {_code(output_args, repr)}"


def _code(a, of_global):
    """An argument as Python source; `of_global` names what has no literal."""
    if isinstance(a, Node):
        return a.name
    if isinstance(a, tuple) and hasattr(a, "_fields"):
        return f"{of_global(type(a))}({', '.join(_code(x, of_global) for x in a)})"
    if isinstance(a, tuple):
        return "(" + ", ".join(_code(x, of_global) for x in a) + ("," if len(a) == 1 else "") + ")"
    if isinstance(a, list):
        return "[" + ", ".join(_code(x, of_global) for x in a) + "]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k!r}: {_code(v, of_global)}" for k, v in a.items()) + "}"
    if isinstance(a, slice):
        return f"slice({', '.join(_code(x, of_global) for x in (a.start, a.stop, a.step))})"
    if (
        a is None
        or a is ...
        or isinstance(a, (bool, int, str, bytes))
        and type(a).__module__ == "builtins"
    ):
        return "..." if a is ... else repr(a)
    return of_global(a)


class _Writer:
    """Writes the body of a graph's function."""

    def __init__(self, graph):
        self.graph, self.globals, self.lines, self.parameters = graph, {}, [], []
        self._last_use = self._find_last_uses()

    def _find_last_uses(self):
        """By node, the nodes whose values nobody takes after it."""
        last, seen = {}, set()
        for node in reversed(list(self.graph.nodes)):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        return last

    def name_of(self, value):
        """The name of an object in the function's globals."""
        if isinstance(value, float):
            if value == value and abs(value) != float("inf"):
                return repr(value)
            name = repr(value).lstrip("-")
            self.globals[name] = float(name)
            return repr(value)
        if isinstance(value, type) and value.__module__ == "builtins":
            return value.__name__
        if callable(value):
            full = _get_qualified_name(value)
            top = full.partition(".")[0]
            if "." not in full and hasattr(builtins, full):
                return full
            if top == "operator":
                self.globals[f"_{full.replace('.', '_')}"] = value
                return f"_{full.replace('.', '_')}"
            if _resolve(full) is value:
                self.globals[top] = __import__(top)
                return full
        elif isinstance(value, (facula.dtype, facula.device, facula.layout, facula.memory_format)):
            top = facula.__name__
            self.globals[top] = facula
            self.globals["device"] = facula.device
            return repr(value)
        name = re.sub(r"\W", "_", getattr(value, "__name__", type(value).__name__)) or "constant"
        number = 0
        while self.globals.get(name, value) is not value or hasattr(builtins, name):
            number += 1
            name = f"{name.rstrip('0123456789_')}_{number}"
        self.globals[name] = value
        return name

    def code(self, a):
        return _code(a, self.name_of)

    def call(self, node):
        """The arguments of a call as source."""
        parts = [self.code(a) for a in node.args]
        return ", ".join(parts + [f"{k} = {self.code(v)}" for k, v in node.kwargs.items()])

    def expression(self, node):
        """The right side of a node's line."""
        args = node.args
        if node.op == "get_attr":
            return _place("self", node.target)
        if node.op == "call_module":
            return f"{_place('self', node.target)}({self.call(node)})"
        if node.op == "call_method":
            rest = [self.code(a) for a in args[1:]]
            rest += [f"{k} = {self.code(v)}" for k, v in node.kwargs.items()]
            return f"{self.code(args[0])}.{node.target}({', '.join(rest)})"
        if node.target in _BINARY and len(args) == 2 and not node.kwargs:
            return f"{self.code(args[0])} {_BINARY[node.target]} {self.code(args[1])}"
        if node.target in _UNARY and len(args) == 1:
            return f"{_UNARY[node.target]}{self.code(args[0])}"
        if node.target is operator.getitem and isinstance(args[0], Node):
            return f"{self.code(args[0])}[{self.code(args[1])}]"
        if node.target is getattr and len(args) == 2 and str(args[1]).isidentifier():
            return f"{self.code(args[0])}.{args[1]}"
        return f"{self.name_of(node.target)}({self.call(node)})"

    def add(self, node):
        if node.op == "placeholder":
            default = f" = {self.code(node.args[0])}" if node.args else ""
            name = node.target if node.target.startswith("*") else node.name
            self.parameters.append(name + default)
            if name.lstrip("*") != node.name:
                self.lines.append(f"{node.name} = {name.lstrip('*')}{self._freed(node)}")
            return
        if node.op == "output":
            self.lines.append(f"return {self.code(node.args[0])}")
            return
        self.lines.append(f"{node.name} = {self.expression(node)}{self._freed(node)}")

    def _freed(self, node):
        """Forgets values at their last use, so that their memory can go."""
        done = [n.name for n in self._last_use.get(node, ())]
        if not node.users and node.op not in ("placeholder",):
            done.append(node.name)
        return f";  {' = '.join(done)} = None" if done else ""


def _place(root, target):
    for part in target.split("."):
        root = f"{root}.{part}" if part.isidentifier() else f'getattr({root}, "{part}")'
    return root


def _resolve(full):
    parts = full.split(".")
    try:
        found = __import__(parts[0])
        for part in parts[1:]:
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return found


class _NodeList:
    """The steps of a graph in order."""

    def __init__(self, graph, reverse=False):
        self.graph, self._reverse = graph, reverse

    def __iter__(self):
        step = "_prev" if self._reverse else "_next"
        node = getattr(self.graph._root, step)
        while node is not self.graph._root:
            following = getattr(node, step)
            if not node._erased:
                yield node
            node = following

    def __reversed__(self):
        return _NodeList(self.graph, not self._reverse)

    def __len__(self):
        return self.graph._count


class Graph:
    """Steps in the order in which they run.

    Example:
        >>> graph = facula.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(facula.relu, (x,))
        >>> _ = graph.output(y)
        >>> facula.fx.GraphModule(facula.nn.Module(), graph)(facula.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._names, self._count, self._codegen = _Names(), 0, CodeGen()
        self.owning_module, self._tracer_cls, self._tracer_extras = (
            owning_module,
            tracer_cls,
            tracer_extras,
        )

    @property
    def nodes(self):
        """The steps, to be gone through in order or reversed."""
        return _NodeList(self)

    def find_nodes(self, *, op, target=None, sort=True):
        """The steps of a kind, with a target if one is given, as a list."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self):
        """The step that returns."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Add a step where the graph is being written; returns the Node."""
        name = self._names.create(name or self._target_name(target, op))
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        self._count += 1
        return node

    @staticmethod
    def _target_name(target, op):
        if isinstance(target, str):
            return target.replace(".", "_").lstrip("*")
        name = getattr(target, "__name__", type(target).__name__)
        return name.rstrip("_") if name.startswith("__") else name

    def placeholder(self, name, type_expr=None, default_value=...):
        """Add an argument of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """Add the reading of a parameter, buffer or other attribute."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """Add the call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """Add the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """Add the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result, type_expr=None):
        """Add the end of the function."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def erase_node(self, to_erase):
        """Take a step out.

        Raises:
            RuntimeError: others use its result.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase._erased:
            return
        to_erase.args, to_erase.kwargs = (), {}
        to_erase._unlink()
        to_erase._erased = True
        self._count -= 1

    @contextmanager
    def _inserting(self, insert):
        before, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n=None):
        """Context manager: new steps go before `n`, or to the start."""
        return self.inserting_after(self._root) if n is None else self._inserting(n.prepend)

    def inserting_after(self, n=None):
        """Context manager: new steps go behind `n`, or to the end."""
        if n is None:
            return self.inserting_before(self._root)
        place = [n]

        def insert(node):
            place[0].append(node)
            place[0] = node

        return self._inserting(insert)

    def node_copy(self, node, arg_transform=lambda x: x):
        """Add a copy of another graph's step; `arg_transform` gives this graph's nodes."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Add copies of another graph's steps; returns what its output was, in this graph.

        Args:
            g (Graph): the other graph.
            val_map (dict[Node, Node]): is filled with nodes of `g` and those of this graph.
            return_output_node (bool): whether the output's Node of `g` is returned as well.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = self._codegen
        values = {}
        for node in self.nodes:
            values[node] = made.node_copy(node, lambda n: values[n])
        return made

    def eliminate_dead_code(self, is_impure_node=None):
        """Take out steps whose results nobody uses; returns whether there were any."""
        self.lint()
        count = self._count
        for node in reversed(self.nodes):
            stays = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not stays and not node.users:
                self.erase_node(node)
        return self._count < count

    def lint(self):
        """Check that steps use earlier steps of this graph, and what the module has.

        Raises:
            RuntimeError: they do not.
        """
        seen = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' is of another Graph")
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined!"
                    )
            seen.add(node)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node):
        place = self.owning_module
        for part in node.target.split("."):
            if not hasattr(place, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of "
                    f"{type(place).__name__}"
                )
            place = getattr(place, part)

    def set_codegen(self, codegen):
        """Choose how the graph is written as Python."""
        self._codegen = codegen

    def python_code(self, root_module, **options):
        """The graph as a function's source with its globals; returns a PythonCode."""
        writer = _Writer(self)
        for node in self.nodes:
            writer.add(node)
        head = self._codegen.gen_fn_def(list(writer.parameters))
        body = "\n".join(f"    {line}" for line in writer.lines or ["pass"])
        return PythonCode(f"\n\n\n{head}\n{body}\n    ", writer.globals)

    def print_tabular(self):
        """Print the steps as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        for row in rows:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip())

    def __str__(self):
        lines = [f"    {node.format_node()}" for node in self.nodes]
        return "\n".join(["graph():", *lines])
