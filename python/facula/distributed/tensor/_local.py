"""What each rank computes, where that is not simply the operator on its parts."""

from __future__ import annotations

import facula
from facula.distributed.tensor._dtensor_spec import DTensorSpec
from facula.distributed.tensor._redistribute import redistribute_local_tensor
from facula.distributed.tensor._rules import losses
from facula.distributed.tensor._utils import (
    compute_local_shape,
    compute_local_shape_and_global_offset,
)
from facula.distributed.tensor.placement_types import Replicate, Shard


def is_plain(call):
    """Whether a call is the operator on the parts, with the arguments that `run` has left."""
    return call.op.name not in _special and call.op.name != "squeeze"


def run(call, plan, values):
    """An operator on parts.

    Args:
        call (Call): the operator, and its arguments as specs.
        plan (Plan): how its tensors lie.
        values (dict): its arguments, with parts in place of tensors.

    Returns:
        what it returns
    """
    special = _special.get(call.op.name)
    if special is not None:
        result = special(call, plan, values)
        if result is not None:
            return result
    _cut_sizes(call, plan, values)
    if call.op.is_view:
        return _view(call, plan, values)
    if "factory" in call.op.flags and plan.outputs[0].is_sharded():
        return _made(call, plan, values)
    return call.op(values)


def _cut_sizes(call, plan, values):
    """Arguments that are the result's sizes become those of the part."""
    # Views without a family of sizes have them too (expand); elsewhere they are not the result's.
    if not (call.op.is_view or "factory" in call.op.flags) or not call.op.sizes:
        return
    name = call.op.sizes[0]
    if isinstance(values.get(name), (list, tuple)) and len(plan.outputs) == 1:
        if len(values[name]) == plan.outputs[0].ndim:
            values[name] = list(local_shape(plan.outputs[0]))


def local_shape(spec):
    """The shape of this rank's part of a tensor."""
    return compute_local_shape(spec.shape, spec.mesh, spec.placements)


def _view(call, plan, values):
    if call.op.family == "sizes" and call.get("size") is not None:
        # The part of a tensor whose strides would do may have others.
        return values["self"].reshape(values["size"])
    result = call.op(values)
    if isinstance(result, (list, tuple)):
        return result
    shape = local_shape(plan.outputs[0])
    # squeeze() drops dimensions of which the part has one row.
    return result if tuple(result.shape) == shape else result.view(shape)


def _made(call, plan, values):
    """New tensors with strides that are given for the whole."""
    if "stride" in values:
        values["stride"] = facula.empty(local_shape(plan.outputs[0]), device="meta").stride()
    return call.op(values)


# --- lookups in a table of which each rank has some rows


def _rows_of_embedding(call, plan, values):
    table = plan.inputs[call.place_of("weight")]
    if not any(p.is_shard(0) for p in table.placements):
        return None
    shape, offset = compute_local_shape_and_global_offset(table.shape, table.mesh, table.placements)
    indices = values["indices"] - offset[0]
    elsewhere = (indices < 0) | (indices >= shape[0])
    values["indices"] = indices.masked_fill(elsewhere, 0)
    values["padding_idx"] = -1
    if shape[0] == 0:
        return values["weight"].new_zeros([*indices.shape, shape[1]])
    return call.op(values).masked_fill_(elsewhere.unsqueeze(-1), 0)


_special = {"embedding": _rows_of_embedding, **losses.on_parts}


# --- random numbers


def drawn(call, values):
    """A random operator: what one process would draw, of which each rank keeps its part.

    All ranks draw the whole, so their generators stay equal.
    """
    from facula.distributed.tensor._dispatch import wrapped

    op, mesh = call.op, call.mesh
    whole = (Replicate(),) * mesh.ndim
    local = {n: list(v) if isinstance(v, (list, tuple)) else v for n, v in values.items()}
    for slot, spec in zip(call.slots, call.specs, strict=True):
        target = DTensorSpec(mesh, whole, spec.tensor_meta)
        if slot.name == "self" and slot.name in op.written:
            _check_no_terms(op, spec)
            part = facula.empty_strided(spec.shape, spec.stride, dtype=spec.tensor_meta.dtype)
        else:
            part = redistribute_local_tensor(_part_of(slot.of(values)), spec, target)
        slot.put(local, part)
    result = op(local)
    for slot, spec in zip(call.slots, call.specs, strict=True):
        if slot.name in op.written:
            source = DTensorSpec(mesh, whole, spec.tensor_meta)
            part = redistribute_local_tensor(slot.of(local), source, spec)
            _part_of(slot.of(values)).copy_(part)
    several = isinstance(result, (list, tuple))
    specs, parts = [], []
    for meta, tensor in zip(call.outputs, result if several else [result], strict=True):
        target = DTensorSpec(mesh, _kept_cuts(call, meta), meta)
        parts.append(redistribute_local_tensor(tensor, DTensorSpec(mesh, whole, meta), target))
        specs.append(target)
    return wrapped(op, values, type(result)(parts) if several else parts[0], specs)


def _check_no_terms(op, spec):
    if any(p.is_partial() for p in spec.placements):
        raise RuntimeError(
            f"{op.func}: expected a tensor to write to that can stay as it lies; "
            f"got {spec.placements}"
        )


def _part_of(tensor):
    return getattr(tensor, "_local_tensor", tensor)


def _kept_cuts(call, meta):
    same = tuple(meta.shape) == tuple(call.first.shape)
    return tuple(p if same and isinstance(p, Shard) else Replicate() for p in call.first.placements)


# --- lists


def one_by_one(op, values):
    """A `_foreach_` operator: the operator on each element of its lists."""
    name = op.name.removeprefix("_foreach_")
    packet = getattr(facula.ops.aten, _single.get(name, name) + ("_" if op.written else ""))
    lists = {n: v for n, v in values.items() if isinstance(v, (list, tuple))}
    args, kwargs = op.split(values)
    count = len(next(iter(lists.values())))

    def at(i, value):
        return value[i] if isinstance(value, (list, tuple)) else value

    results = [
        packet(*[at(i, a) for a in args], **{n: at(i, v) for n, v in kwargs.items()})
        for i in range(count)
    ]
    return None if op.written else results


_single = {"norm": "linalg_vector_norm"}


def over_lists(op, values, slots, specs):
    """A step of an optimizer over lists: all tensors of a parameter are cut as that is."""
    from facula.distributed.tensor._api import DTensor

    first = next(a[0] for a in op.arguments if a[0] in op.written)
    local = {n: list(v) if isinstance(v, (list, tuple)) else v for n, v in values.items()}
    for slot, spec in zip(slots, specs, strict=True):
        tensor = slot.of(values)
        if not isinstance(tensor, DTensor):
            continue
        target = spec
        if slot.index is not None and spec.ndim:
            wanted = values[first][slot.index]._spec.placements
            target = DTensorSpec(spec.mesh, wanted, spec.tensor_meta)
        if target.placements != spec.placements and slot.name in op.written:
            raise RuntimeError(
                f"{op.func}: expected {slot.name} to lie as {first}; "
                f"got {spec.placements} and {target.placements}"
            )
        slot.put(local, redistribute_local_tensor(tensor._local_tensor, spec, target))
    op(local)
    return None
