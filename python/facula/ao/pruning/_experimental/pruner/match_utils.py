"""Rows of nodes in a traced program that follow a pattern."""

from __future__ import annotations

import operator

from facula.nn.utils.parametrize import type_before_parametrizations

__all__ = ["apply_match"]


def _match(modules, node, current):
    """Whether a node is what one element of a pattern says.

    Args:
        modules (dict): of the traced program, by name. node (fx.Node).
        current: a class of modules, a function, or "output".
    """
    if isinstance(current, type):
        return (
            node.op == "call_module"
            and type_before_parametrizations(modules[node.target]) is current
        )
    if callable(current):
        return node.op == "call_function" and node.target is current
    return node.op == current


def _followers(node):
    """The nodes that may come next in a row: the only user, or the parts of a tuple."""
    users = list(node.users)
    if len(users) > 1 and not all(user.target is operator.getitem for user in users):
        return []
    # A part that nothing uses is left over from unpacking.
    return [user for user in users if user.target is not operator.getitem or user.args[1] == 0]


def apply_match(modules, pattern, node, matched_node_pattern):
    """The nodes of a row that begins at `node` and follows `pattern`, or None.

    A result that something else uses, too, ends a row: what is cut for one user would be missing
    for the other. Of a tuple the first part counts.

    Args:
        modules (dict): of the traced program, by name.
        pattern (tuple): classes of modules, functions and "output", or one of them.
        node (fx.Node): the first node. matched_node_pattern (list of fx.Node): those before it.

    Returns:
        list of fx.Node or None
    """
    first, *rest = pattern if isinstance(pattern, tuple) else (pattern,)
    if not _match(modules, node, first):
        return None
    matched = [*matched_node_pattern, node]
    if not rest:
        return matched
    for follower in _followers(node):
        found = apply_match(modules, tuple(rest), follower, matched)
        if found is not None:
            return found
    return None
