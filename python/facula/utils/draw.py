"""Pictures of what facula builds: recorded graphs, the autograd graph, the layers of a call.

`dot(x)` gives Graphviz's language and needs nothing; `svg(x)` runs Graphviz's program `dot`.

Example:
    >>> y = (facula.ones(2, requires_grad=True) * 3).sum()
    >>> "MulBackward0" in facula.utils.draw.dot(y)
    True
"""

from __future__ import annotations

import re
import shutil
import subprocess

from facula import _C

__all__ = ["dot", "layers", "svg"]

_VALUE = re.compile(r"%\d+")


class _Picture:
    """The lines of a directed graph in Graphviz's language."""

    def __init__(self):
        self._lines = []

    def node(self, name, label, **attributes):
        self._add(f'"{name}"', label=label, **attributes)

    def edge(self, start, end, **attributes):
        self._add(f'"{start}" -> "{end}"', **attributes)

    def _add(self, what, **attributes):
        texts = {k: str(v).replace("\\", "\\\\").replace('"', '\\"') for k, v in attributes.items()}
        inside = ", ".join(f'{k}="{v}"' for k, v in texts.items())
        self._lines.append(f"  {what}{f' [{inside}]' if inside else ''};")

    def __str__(self):
        head = '  node [shape=box, fontname="sans-serif", fontsize=10];'
        return "\n".join(["digraph facula {", head, *self._lines, "}"])


def _draw_program(graph):
    picture, maker = _Picture(), {}
    lines = str(graph).splitlines()
    for value in _VALUE.findall(lines[0]):
        maker[value] = f"input {value}"
        picture.node(maker[value], f"input {value}", shape="ellipse")
    for number, line in enumerate(lines[1:-1]):
        results, _, text = line.strip().partition(" = ")
        if not text:  # a call that gives nothing
            results, text = "", results
        name = f"node {number}"
        picture.node(name, text)
        for value in dict.fromkeys(_VALUE.findall(text)):
            picture.edge(maker.get(value, value), name, label=value)
        maker.update(dict.fromkeys(_VALUE.findall(results), name))
    picture.node("return", "return", shape="ellipse")
    for value in _VALUE.findall(lines[-1]):
        picture.edge(maker.get(value, value), "return", label=value)
    return str(picture)


def _leaf_label(node):
    variable = getattr(node, "variable", None)
    if variable is None:
        return node.name()
    return f"{node.name()}\\n{list(variable.shape)}"


def _draw_autograd(root):
    picture, names, waiting = _Picture(), {root: "0"}, [root]
    while waiting:
        node = waiting.pop()
        is_leaf = hasattr(node, "variable")
        picture.node(names[node], _leaf_label(node), shape="ellipse" if is_leaf else "box")
        for following, _ in node.next_functions:
            if following is None:
                continue
            if following not in names:
                names[following] = str(len(names))
                waiting.append(following)
            picture.edge(names[node], names[following])
    return str(picture)


def layers():
    """The layers of a call as a drawing, the first to run at the top (Graphviz's language)."""
    picture, above = _Picture(), None
    for number, (name, is_generic) in enumerate(_C._layers()):
        label = name if is_generic else f"{name}\\nkernels of each operator"
        picture.node(str(number), label)
        if above is not None:
            picture.edge(above, str(number))
        above = str(number)
    return str(picture)


def dot(x):
    """A drawing of `x` in Graphviz's language.

    Args:
        x: a Tensor with a history or its `grad_fn`, or a recorded program (`_C._Graph`).

    Raises:
        TypeError: `x` is something else, or a Tensor without history.
    """
    if isinstance(x, _C._Graph):
        return _draw_program(x)
    node = x.grad_fn if isinstance(x, _C.Tensor) else x
    if not hasattr(node, "next_functions"):
        raise TypeError(
            "dot(): expected a Tensor with a grad_fn, a node of the autograd graph or a recorded "
            f"program; got {type(x).__name__}" + (" without a grad_fn" if node is None else "")
        )
    return _draw_autograd(node)


def svg(x):
    """A drawing of `x` as SVG text; `x` is what dot() takes, or text that dot() or layers() gave.

    Raises:
        RuntimeError: Graphviz's program `dot` is not installed, or failed.
    """
    text = x if isinstance(x, str) else dot(x)
    program = shutil.which("dot")
    if program is None:
        raise RuntimeError(
            "svg(): expected Graphviz's program `dot` on the path (apt-get install graphviz); "
            "dot() needs nothing"
        )
    run = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"svg(): dot failed: {run.stderr.strip()}")
    return run.stdout
