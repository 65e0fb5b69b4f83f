"""The rules of families that records name: elementwise, reductions, along dimensions, joins."""

from __future__ import annotations

from facula.distributed.tensor._propagate import Alternative, everywhere
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard, _NormPartial

_WHOLE = Replicate()
_KINDS = Partial.ALL_REDUCE_OPS
# Operators that copy elements, so that copies of terms are terms, whatever reduces them.
_COPIES = {"clone", "_to_copy", "copy", "copy_", "empty_like", "fill", "zero", "alias"}


def _all_partial(call, kinds):
    return [everywhere(call, Partial(kind)) for kind in kinds]


# --- elementwise


def pointwise(call, mesh_dim):
    """Elementwise with broadcasting: a cut of the result cuts all arguments that have its size."""
    found = [everywhere(call)]
    shape = call.outputs[0].shape
    for dim in range(len(shape)):
        inputs = tuple(broadcast_cut(spec.shape, shape, dim) for spec in call.specs)
        found.append(Alternative((Shard(dim),) * len(call.outputs), inputs))
    return found + _partial_elements(call)


def broadcast_cut(shape, whole, dim):
    """The cut of a tensor that is broadcast, where dimension `dim` of the result is cut."""
    own = dim - (len(whole) - len(shape))
    return Shard(own) if own >= 0 and shape[own] == whole[dim] else _WHOLE


def _partial_elements(call):
    """Alternatives of which arguments are terms, where the operator is linear in them."""
    if call.op.name in _COPIES:
        return _all_partial(call, _KINDS)
    if call.op.name in ("mul", "div"):
        return _factors(call)
    if "linear" not in call.op.flags:
        return []
    # A number beside terms would be added once for each rank.
    tensors = {slot.name for slot in call.slots}
    if any(a[1] == "Tensor" and a[0] not in tensors for a in call.op.arguments):
        return []
    if any(a[0] == "other" and a[1] == "Scalar" for a in call.op.arguments):
        return []
    return _all_partial(call, Partial.LINEAR_REDUCE_OPS)


def _factors(call):
    """One factor may be a term; of a quotient the first."""
    if call.get("rounding_mode") is not None:
        return []
    places = [call.place_of("self")] if call.op.name == "div" else range(len(call.specs))
    return [
        Alternative(
            (Partial(kind),),
            tuple(Partial(kind) if i == place else _WHOLE for i in range(len(call.specs))),
        )
        for place in places
        if place is not None
        for kind in Partial.LINEAR_REDUCE_OPS
    ]


def factory(call, mesh_dim):
    """New tensors like one that is there: cut as it is if they have its size, and never terms."""
    here = call.first.placements[mesh_dim]
    rest = tuple(s.placements[mesh_dim] for s in call.specs[1:])
    same_shape = all(meta.shape == call.first.shape for meta in call.outputs)
    keeps = isinstance(here, Shard) or call.op.name in _COPIES
    after = here if same_shape and keeps else _WHOLE
    return [Alternative((after,) * len(call.outputs), (here, *rest))]


# --- reductions

# What reduces the results of parts. No record says it: kernels give it as a type.
reductions = {
    "sum": "sum",
    "mean": "avg",
    "max": "max",
    "amax": "max",
    "min": "min",
    "amin": "min",
    "prod": "product",
}


def reduction(call, mesh_dim):
    """Over some dimensions or all: parts of those give terms."""
    spec = call.first
    dims = call.dims() or set(range(spec.ndim))  # None and an empty list mean all
    several = len(call.outputs) > 1
    found = [everywhere(call)]
    for dim in range(spec.ndim):
        after = Shard(_after_removal(dim, dims, call.get("keepdim", False)))
        if dim in dims:
            after = None if several else _terms(call, dim)
        if after is not None:
            found.append(Alternative((after,) * len(call.outputs), (Shard(dim),)))
    kind = reductions.get(call.op.name)
    if kind is not None and not several:
        found.append(everywhere(call, Partial(kind)))
    return found


def _after_removal(dim, dims, keepdim):
    return dim if keepdim else dim - sum(d < dim for d in dims)


def _terms(call, dim):
    """What the reductions of parts of a dimension are, or None if they do not give the whole."""
    if call.op.name == "linalg_vector_norm":
        order = call["ord"]
        if order == float("inf"):
            return Partial("max")
        return _NormPartial(norm_type=order) if 0 < order < float("inf") else None
    kind = reductions.get(call.op.name)
    # The mean of means is the mean only if all are of equally many.
    if kind is None or (kind == "avg" and call.first.shape[dim] % call.mesh.size()):
        return None
    return Partial(kind)


# --- along dimensions


def along_dims(call, mesh_dim):
    """Along dimensions that an argument names: all others may be cut, in all tensors alike."""
    spec = call.first
    name = call.op.dims[0] if call.op.dims else "dim"
    dims = call.dims(name)
    found = [everywhere(call)]
    for dim in range(spec.ndim) if dims else ():
        inputs = tuple(_same_cut(s.shape, spec.shape, dim) for s in call.specs)
        if dim in dims or None in inputs:
            continue
        outputs = tuple(_cut_of_result(meta.shape, spec.shape, dim, dims) for meta in call.outputs)
        if None not in outputs:
            found.append(Alternative(outputs, inputs))
    if "linear" in call.op.flags:
        found += _all_partial(call, Partial.LINEAR_REDUCE_OPS)
    elif call.op.family == "dims_of_self" and len(call.specs) == 1:
        found += _all_partial(call, _KINDS)  # flip, roll: elements change places
    return found


def _same_cut(shape, first, dim):
    if len(shape) == 0:
        return _WHOLE
    return Shard(dim) if len(shape) == len(first) and shape[dim] == first[dim] else None


def _cut_of_result(shape, first, dim, dims):
    own = dim if len(shape) == len(first) else _after_removal(dim, dims, False)
    return Shard(own) if own < len(shape) and shape[own] == first[dim] else None


def over_leading_dims(call, mesh_dim):
    """On matrices: all dimensions but the last two may be cut."""
    if call.op.name == "constant_pad_nd":
        return _padded(call)
    spec = call.first
    found = [everywhere(call)]
    if len(call.specs) == 1 and all(
        m.shape[: spec.ndim - 2] == spec.shape[:-2] for m in call.outputs
    ):
        found += [
            Alternative((Shard(d),) * len(call.outputs), (Shard(d),)) for d in range(spec.ndim - 2)
        ]
    return found


def _padded(call):
    """Dimensions that are not padded may be cut."""
    pad = call["pad"]
    free = range(call.first.ndim - len(pad) // 2)
    found = [everywhere(call)] + [Alternative((Shard(d),), (Shard(d),)) for d in free]
    return found + (_all_partial(call, Partial.LINEAR_REDUCE_OPS) if call["value"] == 0 else [])


# --- joins


def joined(call, mesh_dim):
    """cat: all dimensions but that of the join may be cut."""
    ndim = len(call.outputs[0].shape)
    found = [everywhere(call)]
    if all(s.ndim == ndim for s in call.specs):
        dim = call["dim"] % ndim
        found += [everywhere(call, Shard(d)) for d in range(ndim) if d != dim]
    return found + _all_partial(call, _KINDS)


def stacked(call, mesh_dim):
    """stack: a new dimension before some of the others."""
    ndim = call.first.ndim
    dim = call["dim"] % (ndim + 1)
    cuts = [
        Alternative((Shard(d + (d >= dim)),), (Shard(d),) * len(call.specs)) for d in range(ndim)
    ]
    return [everywhere(call), *cuts, *_all_partial(call, _KINDS)]


def of_batch(call, mesh_dim):
    """On images and the like: the first dimension, that of samples, may be cut."""
    found = [everywhere(call)]
    samples = call.first.shape[0]
    rank = {"fold1d": 3, "fold2d": 4, "fold3d": 5}[call.op.family]
    if "input_size" in call.values:  # the gradient of a resampling, which is told all sizes
        return found
    if call.first.ndim != rank or any(s.ndim != rank or s.shape[0] != samples for s in call.specs):
        return found
    return [*found, everywhere(call, Shard(0))]
