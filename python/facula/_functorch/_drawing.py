"""Drawings of graphs by Graphviz."""

from __future__ import annotations

from facula.utils.draw import _Picture


def as_dot(graph, title):
    """A graph in Graphviz's language: a box for each node, an edge for each use.

    Args:
        graph (Graph): what is drawn.
        title (str): stands above it.
    """
    picture = _Picture()
    picture.node(title, title, shape="plaintext")
    for node in graph.nodes:
        value = node.meta.get("val")
        shape = f"\\n{tuple(value.shape)}" if hasattr(value, "shape") else ""
        picture.node(node.name, f"{node.name}\\n{node.op} {node.target}{shape}")
        for used in node.all_input_nodes:
            picture.edge(used.name, node.name)
    return str(picture)
