"""Graphs as drawings: text in the DOT language, and pictures where Graphviz is installed."""

from __future__ import annotations

import subprocess

import facula
from facula.fx._codegen import parse_stack_trace
from facula.fx.graph_module import GraphModule
from facula.fx.node import map_arg

__all__ = ["Dot", "FxGraphDrawer"]

_COLORS = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_param": "Yellow2",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_FUNCTION_COLORS = ("CadetBlue", "Coral", "DarkOliveGreen1", "DarkSeaGreen", "GhostWhite", "Khaki1")
_HASH_COLORS = (*_FUNCTION_COLORS, "LavenderBlush1", "LightSkyBlue", "MistyRose1", "OliveDrab1")


def _quoted(value):
    text = str(value)
    if text.startswith('"') and text.endswith('"'):
        return text
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'


def _attributes(values):
    return ", ".join(f"{key}={_quoted(value)}" for key, value in values.items())


class Dot:
    """A directed graph in the DOT language.

    Args:
        name (str): its name.
        **options: attributes of the drawing, such as `rankdir="TB"`.

    Example:
        >>> dot = Dot("two")
        >>> dot.add_node("a", label="first")
        >>> dot.add_edge("a", "b")
        >>> print(dot.to_string())
        digraph "two" {
          "a" [label="first"];
          "a" -> "b";
        }
    """

    def __init__(self, name, **options):
        self.name, self.options, self.lines = name, options, []
        self.nodes, self.edges, self.clusters = [], [], []

    def add_node(self, name, **values):
        """Add a node with these attributes."""
        self.nodes.append(name)
        self.lines.append(f"  {_quoted(name)}" + (f" [{_attributes(values)}];" if values else ";"))

    def add_edge(self, source, target):
        """Add an edge from a node to another."""
        self.edges.append((source, target))
        self.lines.append(f"  {_quoted(source)} -> {_quoted(target)};")

    def add_cluster(self, name, label, nodes):
        """Put nodes into a frame with a label."""
        self.clusters.append(name)
        inside = " ".join(f"{_quoted(node)};" for node in nodes)
        self.lines.append(
            f"  subgraph {_quoted('cluster_' + name)} {{ label={_quoted(label)}; {inside} }}"
        )

    def to_string(self):
        """The text."""
        options = [f"  {key}={_quoted(value)};" for key, value in self.options.items()]
        return "\n".join([f"digraph {_quoted(self.name)} {{", *options, *self.lines, "}"])

    __str__ = to_string

    def create(self, prog="dot", format="svg"):
        """A picture as bytes, made by Graphviz.

        Args:
            prog (str): the program: "dot", "neato".
            format (str): "svg", "png", "pdf".

        Raises:
            RuntimeError: the program is not installed, or fails.
        """
        try:
            done = subprocess.run(
                [prog, f"-T{format}"],
                input=self.to_string().encode(),
                capture_output=True,
                check=True,
            )
        except FileNotFoundError as error:
            raise RuntimeError(f"Dot.create(): {prog} of Graphviz must be installed") from error
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"Dot.create(): {prog} says {error.stderr.decode()}") from error
        return done.stdout

    def create_svg(self, prog="dot"):
        """A picture in SVG as bytes, made by Graphviz."""
        return self.create(prog, "svg")

    def create_png(self, prog="dot"):
        """A picture in PNG as bytes, made by Graphviz."""
        return self.create(prog, "png")

    def write(self, path, prog="dot", format="raw"):
        """Write the text, or a picture made by Graphviz, to a file.

        Args:
            path (str): the file.
            prog (str): the program of Graphviz.
            format (str): "raw" for the text, or the format of a picture.
        """
        text = format in ("raw", "dot")
        data = self.to_string().encode() if text else self.create(prog, format)
        with open(path, "wb") as file:
            file.write(data)

    def write_raw(self, path):
        """Write the text to a file."""
        self.write(path)

    def write_svg(self, path, prog="dot"):
        """Write a picture in SVG, made by Graphviz, to a file."""
        self.write(path, prog, "svg")

    def write_png(self, path, prog="dot"):
        """Write a picture in PNG, made by Graphviz, to a file."""
        self.write(path, prog, "png")


class FxGraphDrawer:
    """Draws a GraphModule: a box for each step, with what is known of its value.

    Args:
        graph_module (GraphModule): is drawn.
        name (str): the drawing's name.
        ignore_getattr (bool): whether readings of attributes are left out.
        ignore_parameters_and_buffers (bool): whether parameters of modules are left out.
        skip_node_names_in_args (bool): whether arguments that are steps are left to the arrows.
        parse_stack_trace (bool): whether the line of the program is shown.
        dot_graph_shape (str): the shape of the boxes, "record" if None.
        normalize_args (bool): whether arguments are shown in their signature's form.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: x + 1)
        >>> dot = FxGraphDrawer(gm, "sum").get_dot_graph()
        >>> dot.nodes, dot.edges
        (['x', 'add', 'output'], [('x', 'add'), ('add', 'output')])
    """

    def __init__(
        self,
        graph_module,
        name,
        ignore_getattr=False,
        ignore_parameters_and_buffers=False,
        skip_node_names_in_args=True,
        parse_stack_trace=False,
        dot_graph_shape=None,
        normalize_args=False,
    ):
        self._name, self._shape = name, dot_graph_shape or "record"
        self._ignore_getattr, self._ignore_state = ignore_getattr, ignore_parameters_and_buffers
        self._skip_nodes, self._parse_stack_trace = skip_node_names_in_args, parse_stack_trace
        self._normalize_args = normalize_args
        self._dot_graphs = {name: self._drawn(graph_module, name)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                inner = graph_module.get_submodule(node.target)
                if isinstance(inner, GraphModule):
                    place = f"{name}_{node.target}"
                    self._dot_graphs[place] = self._drawn(inner, place)

    def get_dot_graph(self, submod_name=None):
        """The drawing of the module, or of one in it, as a Dot."""
        if submod_name is None:
            return self.get_main_dot_graph()
        return self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self):
        """The drawing of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name):
        """The drawing of a module in it."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self):
        """All drawings by name."""
        return self._dot_graphs

    def _drawn(self, module, name):
        dot = Dot(name, rankdir="TB")
        nodes = [n for n in module.graph.nodes if not (self._ignore_getattr and n.op == "get_attr")]
        for node in nodes:
            dot.add_node(node.name, label=self._label(module, node), **self._style(node))
            if node.op == "call_module" and not self._ignore_state:
                self._draw_state(dot, module, node)
        for node in nodes:
            for used in node.all_input_nodes:
                if used in nodes:
                    dot.add_edge(used.name, node.name)
        return dot

    def _draw_state(self, dot, module, node):
        inner = module.get_submodule(node.target)
        if isinstance(inner, GraphModule):
            return
        for kind, named in (
            ("parameter", inner.named_parameters()),
            ("buffer", inner.named_buffers()),
        ):
            for key, value in named:
                place = f"{node.name}.{key}"
                label = f"{{{key}|op_code=get_{kind}\\l|{_described(value)}\\l}}"
                dot.add_node(place, label=label, **self._style_of_state())
                dot.add_edge(place, node.name)

    def _style_of_state(self):
        return {
            "shape": self._shape,
            "fillcolor": _COLORS["get_param"],
            "style": '"filled,rounded"',
        }

    def _style(self, node):
        color = _COLORS.get(node.op)
        if color is None:
            # Steps with one target have one colour.
            name = node._pretty_print_target(node.target)
            color = _HASH_COLORS[sum(map(ord, name)) % len(_HASH_COLORS)]
        return {
            "shape": self._shape,
            "fillcolor": color,
            "style": '"filled,rounded"',
            "fontcolor": "#000000",
        }

    def _label(self, module, node):
        parts = [f"name=%{node.name}", f"op_code={node.op}\\l"]
        if node.op == "call_module":
            inner = module.get_submodule(node.target)
            parts.append(f"{facula.typename(inner)}\\l")
            known = getattr(inner, "__constants__", ())
            parts += [f"{key}: {_escaped(getattr(inner, key, None))}\\l" for key in known]
        parts.append(f"target={_escaped(node._pretty_print_target(node.target))}\\l")
        args, kwargs = self._arguments(module, node)
        for label, values in (("args", args), ("kwargs", kwargs)):
            if values:
                parts.append(f"{label}={_escaped(values)}\\l")
        parts.append(f"num_users={len(node.users)}\\l")
        value = node.meta.get("tensor_meta", node.meta.get("val"))
        if hasattr(value, "dtype"):
            parts.append(f"{_described(value)}\\l")
        if self._parse_stack_trace and node.stack_trace:
            place = parse_stack_trace(node.stack_trace)
            if place:
                parts.append(f"{_escaped(place.get_summary_str())}\\l")
        return "{" + "|".join(parts) + "}"

    def _arguments(self, module, node):
        args, kwargs = node.args, node.kwargs
        if self._normalize_args and node.op in ("call_function", "call_module"):
            try:
                args, kwargs = node.normalized_arguments(module) or (args, kwargs)
            except RuntimeError:
                pass  # several signatures serve
        if not self._skip_nodes:
            return args, kwargs
        hidden = (map_arg(a, lambda n: _Hidden()) for a in (args, kwargs))
        args, kwargs = hidden
        args = tuple(a for a in args if not isinstance(a, _Hidden))
        return args, {k: v for k, v in kwargs.items() if not isinstance(v, _Hidden)}


class _Hidden:
    """Stands for a step in arguments; an arrow shows which."""

    def __repr__(self):
        return "->"


def _described(value):
    text = (
        f"dtype={value.dtype}\\l|shape={list(value.shape)}\\l|requires_grad={value.requires_grad}"
    )
    stride = value.stride() if callable(value.stride) else value.stride
    return f"{text}\\l|stride={tuple(stride)}"


def _escaped(value):
    """A text in which nothing means something to the labels of DOT."""
    text = str(value)
    for sign in "{}|<>":
        text = text.replace(sign, f"\\{sign}")
    return text if len(text) < 200 else f"{text[:197]}..."
