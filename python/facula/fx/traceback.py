"""What is known of the step that runs at present, for steps that are recorded on its behalf."""

from __future__ import annotations

import copy
import json
from contextlib import contextmanager
from enum import Enum

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "get_current_replay_node",
    "get_graph_provenance_json",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_current_replay_node",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]

_current_meta = {}
_current_replay_node = None
_should_preserve = False


class NodeSourceAction(Enum):
    """What a pass did with a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Where a node comes from: which node, changed by which pass, and how.

    Args:
        node (Node | None): the node that it was made of.
        pass_name (str): the pass.
        action (NodeSourceAction | list): what was done.
    """

    def __init__(self, node, pass_name="", action=None):
        actions = [] if action is None else action if isinstance(action, list) else [action]
        for item in actions:
            if not isinstance(item, NodeSourceAction):
                raise AssertionError(f"NodeSource: action must be a NodeSourceAction; got {item!r}")
        self.pass_name, self.action = pass_name, actions
        self.from_node, self.node_info = [], None
        if node is not None:
            self.node_info = {
                "name": node.name,
                "target": str(node.target),
                "graph_id": id(node.graph),
            }
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    def _known(self, key, otherwise):
        return otherwise if self.node_info is None else self.node_info[key]

    @property
    def name(self):
        """The name of the node it was made of."""
        return self._known("name", "")

    @property
    def target(self):
        """The target of the node it was made of, as text."""
        return self._known("target", "")

    @property
    def graph_id(self):
        """The id of the graph of the node it was made of."""
        return self._known("graph_id", -1)

    def _action_text(self):
        return "+".join(action.name.lower() for action in self.action)

    def __repr__(self):
        return self.print_readable()

    def print_readable(self, indent=0):
        """The source and those before it as text, one a line."""
        if indent > 9:
            return ""
        line = (
            f"{'  ' * indent}(name={self.name}, pass_name={self.pass_name}, "
            f"action={self._action_text()}, graph_id={self.graph_id})\n"
        )
        return line + "".join(node.print_readable(indent + 1) for node in self.from_node)

    def to_dict(self):
        """The source and those before it as plain values."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._action_text(),
            "from_node": [node.to_dict() for node in self.from_node],
        }

    def __eq__(self, other):
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash(json.dumps(self.to_dict(), sort_keys=True))


@contextmanager
def _restoring(change):
    """Runs `change`, and afterwards puts back what it changed."""
    global _current_meta, _should_preserve, _current_replay_node
    before = _current_meta, _should_preserve, _current_replay_node
    try:
        change()
        yield
    finally:
        _current_meta, _should_preserve, _current_replay_node = before


@contextmanager
def preserve_node_meta(enable=True):
    """Context manager: steps take over what is known of the step that runs.

    Args:
        enable (bool): whether they do.
    """

    def change():
        global _should_preserve, _current_meta
        _should_preserve, _current_meta = enable, dict(_current_meta)

    with _restoring(change):
        yield


@contextmanager
def annotate(annotation_dict):
    """Context manager: steps recorded in it have these entries in `meta["custom"]`.

    Args:
        annotation_dict (dict): the entries.
    """

    def change():
        global _current_meta
        custom = {**_current_meta.get("custom", {}), **annotation_dict}
        _current_meta = {**_current_meta, "custom": custom}

    with _restoring(change):
        yield


def annotate_fn(annotation_dict):
    """A decorator: steps recorded in the function have these entries in `meta["custom"]`."""
    import functools

    def decorate(fn):
        @functools.wraps(fn)
        def call(*args, **kwargs):
            with annotate(annotation_dict):
                return fn(*args, **kwargs)

        return call

    return decorate


def set_stack_trace(stack):
    """Say where the step that runs comes from.

    Args:
        stack (list[str]): the lines of a stack trace.
    """
    if _should_preserve and stack:
        _current_meta["stack_trace"] = "".join(stack)


def set_grad_fn_seq_nr(seq_nr):
    """Say which function of the backward pass runs.

    Args:
        seq_nr (int): its number in the order of the forward pass.
    """
    if _should_preserve:
        _current_meta["grad_fn_seq_nr"] = [*_current_meta.get("grad_fn_seq_nr", []), seq_nr]
        _current_meta["in_grad_fn"] = _current_meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr():
    """Say that the function of the backward pass that ran last has ended."""
    if not _should_preserve:
        return
    depth = _current_meta.get("in_grad_fn", 0)
    if depth > 1:
        _current_meta["in_grad_fn"] = depth - 1
        _current_meta["grad_fn_seq_nr"] = _current_meta["grad_fn_seq_nr"][:-1]
    elif depth == 1:
        del _current_meta["in_grad_fn"], _current_meta["grad_fn_seq_nr"]


def format_stack():
    """Where the step that runs comes from, as lines."""
    import traceback

    if _should_preserve:
        return [_current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def has_preserved_node_meta():
    """Whether steps take over what is known of the step that runs."""
    return _should_preserve


@contextmanager
def set_current_meta(node, pass_name=""):
    """Context manager: this is the step that runs.

    Args:
        node (Node): the step.
        pass_name (str): the pass that runs it; noted in `meta["from_node"]`.
    """

    def change():
        global _current_meta
        if _should_preserve and node.meta:
            source = NodeSource(node, pass_name, NodeSourceAction.CREATE)
            _current_meta = {**node.meta, "from_node": [source]}

    with _restoring(change):
        yield


def get_current_meta():
    """What is known of the step that runs, as a dict."""
    return _current_meta


@contextmanager
def set_current_replay_node(node):
    """Context manager: the node that is being run again.

    Args:
        node (Node): the node.
    """

    def change():
        global _current_replay_node
        _current_replay_node = node

    with _restoring(change):
        yield


def get_current_replay_node():
    """The node that is being run again, or None."""
    return _current_replay_node


def get_graph_provenance_json(graph):
    """By node, where it comes from, as plain values.

    Args:
        graph (Graph): the graph.

    Returns:
        dict[str, list[dict]]
    """
    found = {}
    for node in graph.nodes:
        if node.op == "call_function":
            found[node.name] = [source.to_dict() for source in node.meta.get("from_node", [])]
    return found
