"""What happens when an operator is called on DTensors.

Its arguments are bound to their names; the operator's rule says how they are to lie; they are
redistributed where they lie otherwise; each rank calls the operator on its parts; and what that
returns are the parts of the results. The decision is remembered for equal calls.
"""

from __future__ import annotations

import contextlib

import facula
from facula.distributed.tensor import _local, _ready
from facula.distributed.tensor._api import DTensor
from facula.distributed.tensor._dtensor_spec import DTensorSpec
from facula.distributed.tensor._operators import (
    Call,
    ShapesUnknown,
    flat_tensors,
    frozen,
    meta_of,
    operator_of,
    slots_of,
)
from facula.distributed.tensor._propagate import Plan, plan_of
from facula.distributed.tensor._redistribute import redistribute_local_tensor
from facula.distributed.tensor._rules import on_whole_tensors, rule_of
from facula.distributed.tensor._settings import settings
from facula.distributed.tensor.placement_types import Replicate

_plans = {}
_MOST_PLANS = 10_000


@contextlib.contextmanager
def implicit_replication():
    """Take plain tensors beside DTensors for the same at all ranks.

    Example:
        >>> from facula.distributed.tensor import Shard, distribute_tensor
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     x = distribute_tensor(facula.ones(2), mesh, [Shard(0)])
        ...     with implicit_replication():
        ...         return (x + facula.arange(2)).to_local()
        >>> facula.distributed.threads.run(work, 2)
        [tensor([1.]), tensor([2.])]
    """
    before = settings.replicates
    settings.replicates = True
    try:
        yield
    finally:
        settings.replicates = before


def dispatch(func, args, kwargs):
    """Call an operator some of whose arguments are DTensors.

    Args:
        func (OpOverload): the operator.
        args (sequence): positional arguments.
        kwargs (dict): keyword arguments.

    Returns:
        what the operator returns, with DTensors for tensors

    Raises:
        RuntimeError: plain tensors among the arguments; several meshes; a tensor that is written to
            would have to lie otherwise.
    """
    key = _ready.key_of(func, args, kwargs)
    ready = _ready.known.get(key) if key is not None else None
    if ready is not None:
        return ready(args)
    op = operator_of(func)
    if "geometry_only" in op.flags:
        raise NotImplementedError(
            f"{func}: expected an operator that returns a new tensor; a DTensor's shape is fixed"
        )
    values = op.bind(args, kwargs)
    if op.name.startswith("_foreach_"):
        return _local.one_by_one(op, values)
    slots = slots_of(values)
    mesh = _mesh_of(op, values, slots)
    specs = [_spec_of(op, slot.of(values), mesh) for slot in slots]
    if op.name.startswith("_fused_") and isinstance(values[op.names[0]], (list, tuple)):
        return _local.over_lists(op, values, slots, specs)
    if mesh.get_coordinate() is None:
        return _outside(op, values, slots, specs, mesh)
    if "random" in op.flags:
        return _local.drawn(_call_of(op, values, slots, specs, mesh), values)
    if "shape_from_data" in op.flags:
        return _on_whole_tensors(op, values, slots, specs, mesh)
    return _by_plan(op, values, slots, specs, mesh, key)


def _mesh_of(op, values, slots):
    meshes = [t._spec.mesh for t in (s.of(values) for s in slots) if isinstance(t, DTensor)]
    # The tensors of an optimizer's lists are parameters, each of which has a mesh.
    for other in meshes[1:] if not op.name.startswith("_fused_") else ():
        if other is not meshes[0] and other != meshes[0]:
            raise RuntimeError(
                f"{op.func}: expected DTensors of one mesh; got {meshes[0]} and {other}"
            )
    return meshes[0]


def _spec_of(op, tensor, mesh):
    if isinstance(tensor, DTensor):
        return tensor._spec
    if tensor.numel() != 1 and not settings.replicates and not _is_in_backward():
        raise RuntimeError(
            f"{op.func}: expected DTensors; got a plain tensor of shape {list(tensor.shape)} "
            "beside them (distribute_tensor or DTensor.from_local makes one of it)"
        )
    return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta_of(tensor))


def _is_in_backward():
    """Whether a derivative is at work, whose own plain tensors are the same at all ranks."""
    return facula._C._current_graph_task_id() != -1


def _listed(values):
    return {n: list(v) if isinstance(v, (list, tuple)) else v for n, v in values.items()}


def _call_of(op, values, slots, specs, mesh):
    seen = _listed(values)
    for slot, spec in zip(slots, specs, strict=True):
        slot.put(seen, spec)
    return Call(op, seen, slots, mesh)


def _local_of(tensor):
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def _by_plan(op, values, slots, specs, mesh, key=None):
    call = _call_of(op, values, slots, specs, mesh)
    try:
        plan = _plan(call)
    except ShapesUnknown:  # they depend on values (a mask as an index), or arguments are wrong
        return _on_whole_tensors(op, values, slots, specs, mesh)
    local = _listed(values)
    for slot, spec, target in zip(slots, specs, plan.inputs, strict=True):
        part = _local_of(slot.of(values))
        if spec.placements != target.placements:
            part = redistribute_local_tensor(part, spec, target)
        slot.put(local, part)
    result = _local.run(call, plan, local)
    if op.written:
        _write_back(op, values, slots, specs, plan, local)
    moved = any(a.placements != b.placements for a, b in zip(specs, plan.inputs, strict=True))
    if key is not None and not moved:
        _ready.remember(key, call, plan, local, result)
    return wrapped(op, values, result, plan.outputs)


def _write_back(op, values, slots, specs, plan, local):
    """Give tensors that were written to as wholes their parts."""
    for slot, spec, target in zip(slots, specs, plan.inputs, strict=True):
        if slot.name in op.written and spec.placements != target.placements:
            part = redistribute_local_tensor(slot.of(local), target, spec)
            _local_of(slot.of(values)).copy_(part)


def forget_plans():
    """Decide anew for all calls: a rule has changed."""
    _plans.clear()
    _ready.known.clear()


def _plan(call):
    try:
        key = call.op, call.mesh, settings.loss_parallel, frozen(list(call.values.items()))
        known = _plans.get(key)
    except TypeError:  # an argument that cannot be hashed
        return plan_of(call, rule_of(call.op))
    if known is None:
        known = plan_of(call, rule_of(call.op))
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = known
    return known


def wrapped(op, values, result, specs):
    """What an operator returns, with DTensors around the parts; arguments for those written to."""
    specs, written = iter(specs), iter(op.written)

    def wrap(value, is_written):
        if isinstance(value, (list, tuple)):
            return type(value)([wrap(v, is_written) for v in value])
        spec = next(specs, None) if value is None or isinstance(value, facula.Tensor) else None
        if is_written:
            return values[next(written)]
        return DTensor(value, spec) if isinstance(value, facula.Tensor) else value

    marks = [returned[6] for returned in op.returns]
    if len(marks) > 1:
        return type(result)([wrap(v, m) for v, m in zip(result, marks, strict=True)])
    return wrap(result, bool(marks) and marks[0])


def _on_whole_tensors(op, values, slots, specs, mesh):
    """Operators whose results have shapes or values that depend on all elements."""
    call = _call_of(op, values, slots, specs, mesh)
    local = _listed(values)
    whole = (Replicate(),) * mesh.ndim
    for slot, spec in zip(slots, specs, strict=True):
        target = DTensorSpec(mesh, whole, spec.tensor_meta)
        slot.put(local, redistribute_local_tensor(_local_of(slot.of(values)), spec, target))
    result = call.op(local)
    metas = [None if t is None else meta_of(t) for t in flat_tensors(result)]
    return wrapped(op, values, result, [DTensorSpec(mesh, whole, m) if m else None for m in metas])


def _outside(op, values, slots, specs, mesh):
    """A rank that is not in the mesh: it has nothing of the results."""
    call = _call_of(op, values, slots, specs, mesh)
    plan = plan_of(call, on_whole_tensors) if not op.written else Plan((), ())
    if op.written:
        return values[op.written[0]]
    parts = [
        None if s is None else facula.empty(0, dtype=s.tensor_meta.dtype) for s in plan.outputs
    ]
    several = len(op.returns) > 1 or "[]" in (op.returns[0][1] if op.returns else "")
    return wrapped(op, values, parts if several else parts[0] if parts else None, plan.outputs)
