"""Backward passes of one stage: all at once, or inputs first and weights later."""

from __future__ import annotations

import facula
from facula.autograd.graph import GradientEdge

__all__ = ["stage_backward", "stage_backward_input", "stage_backward_weight"]


def _roots(outputs, grads):
    """The outputs that have a graph, with their gradients (None for a scalar: 1)."""
    grads = [None] * len(outputs) if grads is None else grads
    pairs = [
        (out, grad)
        for out, grad in zip(outputs, grads, strict=True)
        if isinstance(out, facula.Tensor)
        and out.requires_grad
        and (grad is not None or out.numel() == 1)
    ]
    return [out for out, _ in pairs], [grad for _, grad in pairs]


def stage_backward(stage_output, output_grads, input_values):
    """Accumulate gradients of a stage's parameters, and return those of its inputs.

    Args:
        stage_output (tuple): outputs of the stage, or its loss.
        output_grads (tuple): a gradient for each, or None for a loss.
        input_values (list): what the stage was given.

    Returns:
        tuple: a gradient for each input, None for one that needs none
    """
    outputs, grads = _roots(stage_output, output_grads)
    if outputs:
        facula.autograd.backward(outputs, grads)
    return tuple(_take_grad(value) for value in input_values)


def _take_grad(value):
    if not isinstance(value, facula.Tensor) or not value.is_leaf:
        return None
    grad, value.grad = value.grad, None
    return grad


def _node_of(tensor):
    return facula.autograd.graph.get_gradient_edge(tensor).node


class _Graph:
    """The nodes below some outputs, and what can be reached from each."""

    def __init__(self, roots):
        self.children, order, stack = {}, [], [(r, False) for r in roots]
        while stack:
            node, left = stack.pop()
            if left:
                order.append(node)
            elif node not in self.children:
                self.children[node] = [n for n, _ in node.next_functions if n is not None]
                stack.append((node, True))
                stack += [(child, False) for child in self.children[node]]
        self.order = order  # each node after those that it leads to

    def leading_to(self, targets):
        """For each node the set of targets that it leads to."""
        found = {}
        for node in self.order:
            reached = {node} & targets
            for child in self.children[node]:
                reached |= found.get(child, set())
            found[node] = reached
        return found


class _WeightWork:
    """What is left to do for some weights: gradients at some place of the graph."""

    def __init__(self, weights, roots, grads):
        self.weights, self.roots, self.grads = weights, roots, grads


def _weights_beside(graph, to_inputs, to_weights):
    """For each node on the way to an input: the weights that branch off there."""
    beside = {}
    for node in graph.order:
        if not to_inputs[node]:
            continue
        for child in graph.children[node]:
            if not to_inputs[child] and to_weights[child]:
                beside.setdefault(node, set()).update(to_weights[child])
    return beside


def stage_backward_input(stage_outputs_or_loss, output_grads, input_values, weights):
    """Gradients of a stage's inputs alone, and what is needed for those of its weights later.

    Where weights branch off the way from the outputs to the inputs, the gradients that pass are
    kept; the second half begins there and computes nothing twice (Qi et al., 2023).

    Args:
        stage_outputs_or_loss (tuple): outputs of the stage, or its loss.
        output_grads (tuple): a gradient for each, or None for a loss.
        input_values (list): what the stage was given.
        weights (iterable of Parameter): of the stage.

    Returns:
        tuple: a tuple of gradients of inputs, and what `stage_backward_weight` takes
    """
    outputs, grads = _roots(stage_outputs_or_loss, output_grads)
    inputs = [v for v in input_values if isinstance(v, facula.Tensor) and v.requires_grad]
    by_node = {_node_of(w): w for w in weights if w.requires_grad}
    if not outputs:
        return (None,) * len(input_values), []
    if not inputs:
        return (None,) * len(input_values), [_WeightWork(list(by_node.values()), outputs, grads)]

    graph = _Graph([_node_of(out) for out in outputs])
    to_inputs = graph.leading_to({_node_of(v) for v in inputs})
    to_weights = graph.leading_to(set(by_node))
    beside = _weights_beside(graph, to_inputs, to_weights)
    uses = {}
    for node, found in beside.items():
        for weight in found:
            uses.setdefault(weight, []).append(node)
    # A weight that is used at several places is reached from the first of them twice.
    single = {weight: nodes[0] for weight, nodes in uses.items() if len(nodes) == 1}

    kept, hooks = {}, []
    for node in set(single.values()):
        hooks.append(node.register_prehook(lambda g, node=node: kept.__setitem__(node, g)))
    try:
        found = facula.autograd.grad(outputs, inputs, grads, retain_graph=True, allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()

    works = []
    for node, passed in kept.items():
        edges = [(GradientEdge(node, i), g) for i, g in enumerate(passed) if g is not None]
        mine = [by_node[w] for w, at in single.items() if at is node or at == node]
        works.append(_WeightWork(mine, [e for e, _ in edges], [g for _, g in edges]))
    rest = [w for node, w in by_node.items() if node not in single]
    if rest:
        works.append(_WeightWork(rest, outputs, grads))
    found = iter(found)
    needs = [isinstance(v, facula.Tensor) and v.requires_grad for v in input_values]
    return tuple(next(found) if need else None for need in needs), works


def stage_backward_weight(weights, param_groups, retain_graph=False):
    """Accumulate the gradients that `stage_backward_input` has left out.

    Args:
        weights (iterable of Parameter): of the stage.
        param_groups (list): what `stage_backward_input` returned.
        retain_graph (bool): whether the graph can be used again.

    Returns:
        tuple: the gradient of each weight
    """
    weights = list(weights)
    for i, work in enumerate(param_groups):
        keep = retain_graph or i + 1 < len(param_groups)
        if not work.weights:
            continue
        grads = facula.autograd.grad(
            work.roots, work.weights, work.grads, retain_graph=keep, allow_unused=True
        )
        for weight, grad in zip(work.weights, grads, strict=True):
            if grad is not None:
                with facula.no_grad():
                    weight.grad = grad if weight.grad is None else weight.grad.add_(grad)
    return tuple(w.grad for w in weights)
