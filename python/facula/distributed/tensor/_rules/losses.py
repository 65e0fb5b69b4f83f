"""Losses. Within `loss_parallel`, scores whose classes are spread over ranks stay so.

Each rank has the exponentials and the scores of its classes; what ranks tell each other is one
number for each sample. So do Megatron's layers (Shoeybi et al., 2019).
"""

from __future__ import annotations

import facula
from facula.distributed import _waited_collectives as collectives
from facula.distributed.tensor._propagate import Alternative, everywhere
from facula.distributed.tensor._rules.families import along_dims
from facula.distributed.tensor._rules.products import by_equation
from facula.distributed.tensor._settings import settings
from facula.distributed.tensor._utils import compute_local_shape_and_global_offset
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard

# --- rules, beside those that operators have anyway


def _classes_cut(call):
    cut, whole = Shard(_class_dim(call)), Replicate()
    scores = {"self", "output"} | ({"grad_output"} if "output" in call.values else set())
    inputs = tuple(cut if slot.name in scores else whole for slot in call.slots)
    results = tuple(cut if len(m.shape) > cut.dim else whole for m in call.outputs)
    outputs = (whole, whole) if len(results) == 2 else results
    return Alternative(outputs, inputs, in_order=True)


def _class_dim(call):
    scores = call["self"] if "self" in call.values else call["output"]
    if "dim" in call.values:
        return call["dim"] % max(1, scores.ndim)
    return 0 if scores.ndim == 1 else 1


def with_cut_classes(rule):
    """A rule that also leaves classes cut, within `loss_parallel`."""

    def extended(call, mesh_dim):
        found = rule(call, mesh_dim)
        return [*found, _classes_cut(call)] if settings.loss_parallel else found

    return extended


def _by_sample(call, mesh_dim):
    """Samples may be cut if their losses are not added, or all are of equal weight."""
    if call.first.ndim == 1:
        return [everywhere(call)]
    by_sample = (Shard(0),) * 2
    weight = (Replicate(),) if call.place_of("weight") is not None else ()
    reduced = {0: Shard(0), 2: Partial()}.get(call["reduction"])
    if reduced is None:  # a mean divides by a number that parts do not know
        return [everywhere(call)]
    return [everywhere(call), Alternative((reduced, Partial()), by_sample + weight)]


def _by_sample_backward(call, mesh_dim):
    """Samples may be cut: each has a gradient of its own."""
    if call["self"].ndim == 1:
        return [everywhere(call)]
    words = {"grad_output": "n"[: call["grad_output"].ndim], "self": "nC", "target": "n"}
    words |= {"weight": "C", "total_weight": ""}
    return by_equation(call, ",".join(words[slot.name] for slot in call.slots) + "->nC")


rules = {
    "_log_softmax": with_cut_classes(along_dims),
    "_log_softmax_backward_data": with_cut_classes(along_dims),
    "nll_loss_forward": with_cut_classes(_by_sample),
    "nll_loss_backward": with_cut_classes(_by_sample_backward),
}


# --- what each rank computes


def _groups_of_classes(call, plan):
    """The mesh's dimensions that cut the classes."""
    name = "self" if "self" in call.values else "output"
    spec = plan.inputs[call.place_of(name)]
    dim = _class_dim(call)
    return spec, dim, [i for i, p in enumerate(spec.placements) if p.is_shard(dim)]


def _reduced(tensor, kind, spec, dims):
    for i in dims:
        tensor = collectives.all_reduce(tensor, kind, (spec.mesh, i))
    return tensor


def log_softmax(call, plan, values):
    """The logarithm of softmax of parts; None where the classes are not cut."""
    spec, dim, cuts = _groups_of_classes(call, plan)
    if not cuts:
        return None
    x = values["self"]
    x = x.float() if values["half_to_float"] else x
    shape = [*x.shape[:dim], 1, *x.shape[dim + 1 :]]
    top = x.amax(dim, keepdim=True) if x.shape[dim] else x.new_full(shape, float("-inf"))
    x = x - _reduced(top, "max", spec, cuts)
    return x - _reduced(x.exp().sum(dim, keepdim=True), "sum", spec, cuts).log()


def log_softmax_backward(call, plan, values):
    """The gradient of `log_softmax` of parts; None where the classes are not cut."""
    spec, dim, cuts = _groups_of_classes(call, plan)
    if not cuts:
        return None
    grad = values["grad_output"]
    total = _reduced(grad.sum(dim, keepdim=True), "sum", spec, cuts)
    return (grad - values["output"].exp() * total).to(values["input_dtype"])


def _own_classes(call, plan, values):
    """The classes among this rank's, which samples have one of them, and which count at all."""
    spec, dim, cuts = _groups_of_classes(call, plan)
    if not cuts:
        return None
    shape, offset = compute_local_shape_and_global_offset(spec.shape, spec.mesh, spec.placements)
    target = values["target"].unsqueeze(dim)
    counts = target != values["ignore_index"]
    local = target - offset[dim]
    own = (local >= 0) & (local < shape[dim]) & counts
    return spec, dim, cuts, local.where(own, 0), own, counts


def _weights(values, counts, like):
    """The weight of each sample."""
    if values["weight"] is None:
        return counts.to(like.dtype)
    target = values["target"].reshape(counts.shape)
    return values["weight"][target.where(counts, 0)] * counts


def nll_loss(call, plan, values):
    """The loss of parts; None where the classes are not cut."""
    found = _own_classes(call, plan, values)
    if found is None:
        return None
    spec, dim, cuts, local, own, counts = found
    scores = values["self"]
    weights = _weights(values, counts, scores)
    picked = scores.gather(dim, local) if scores.shape[dim] else scores.new_zeros(local.shape)
    loss = -_reduced(picked.where(own, 0), "sum", spec, cuts) * weights
    total = weights.sum()
    if values["reduction"] == 0:
        return loss.squeeze(dim), scores.new_zeros(())
    loss = loss.sum()
    return (loss / total if values["reduction"] == 1 else loss), total


def nll_loss_backward(call, plan, values):
    """The gradient of `nll_loss` of parts; None where the classes are not cut."""
    found = _own_classes(call, plan, values)
    if found is None:
        return None
    _, dim, _, local, own, counts = found
    scores, grad = values["self"], values["grad_output"]
    grad = grad.unsqueeze(dim) if values["reduction"] == 0 else grad
    grad = grad / values["total_weight"] if values["reduction"] == 1 else grad
    grad = -(grad * _weights(values, counts, scores)).where(own, 0)
    whole = facula.zeros_like(scores)
    return whole.scatter_add(dim, local, grad) if scores.shape[dim] else whole


on_parts = {
    "_log_softmax": log_softmax,
    "_log_softmax_backward_data": log_softmax_backward,
    "nll_loss_forward": nll_loss,
    "nll_loss_backward": nll_loss_backward,
}
