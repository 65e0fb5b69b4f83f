"""vmap: a function of one sample made into a function of a batch."""

from __future__ import annotations

import facula
from facula import _C, _capture
from facula.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

_levels = _C._functorch


def _name_of(function):
    return getattr(function, "__name__", repr(function))


def _check_in_dim(where, in_dim, value):
    if not isinstance(in_dim, int) and in_dim is not None:
        raise ValueError(f"{where}: in_dims must hold integers and None; got {in_dim!r}")
    if in_dim is None:
        return None
    if not isinstance(value, _C.Tensor):
        raise ValueError(
            f"{where}: an input that is no Tensor must have in_dim None; got {in_dim} for "
            f"{type(value).__name__}"
        )
    rank = value.dim()
    if not -rank <= in_dim < rank:
        raise ValueError(
            f"{where}: in_dim must be in [-{rank}, {rank}) for a Tensor of {rank} dimensions; got "
            f"{in_dim}"
        )
    return in_dim % rank


def _batched_inputs(function, in_dims, args):
    """Flat arguments, the dimension of each that is mapped, their TreeSpec, the batch size."""
    where = f"vmap({_name_of(function)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}: in_dims must be an int or a tuple nested as the inputs are; got "
            f"{type(in_dims).__name__}"
        )
    if len(args) == 0:
        raise ValueError(
            f"vmap({_name_of(function)}): the function must be called with inputs; got none"
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{where}: in_dims must be nested as the inputs are, {spec}; got "
            f"{tree_flatten(in_dims)[1]}"
        )
    dims = [_check_in_dim(where, d, leaf) for d, leaf in zip(dims, leaves, strict=False)]
    sizes = [leaf.size(d) for d, leaf in zip(dims, leaves, strict=False) if d is not None]
    if not sizes:
        raise ValueError("vmap(): at least one input must be a Tensor with an in_dim; got none")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap(): all inputs must have the same size in their mapped dimensions; got {sizes}"
        )
    return leaves, dims, spec, sizes[0]


def _unbatched(function, output, out_dim, level, size):
    if not isinstance(output, _C.Tensor):
        if out_dim is None:
            return output
        raise ValueError(
            f"vmap({_name_of(function)}): the function must return Tensors, or out_dims None for "
            f"the others; got {type(output).__name__}"
        )
    if out_dim is not None:
        return _levels._remove_batch_dim(output, level, size, out_dim)
    if _levels.is_batchedtensor(output) and _levels._level_of(output) == level:
        raise ValueError(
            f"vmap({_name_of(function)}, ...): `{_name_of(function)}` can not return a "
            "BatchedTensor when out_dim is None"
        )
    return output


def _out_dims_of(function, out_dims, spec):
    if not _is_nest_of_dims(out_dims):
        raise ValueError(
            f"vmap({_name_of(function)}): out_dims must hold ints and None; got {out_dims!r}"
        )
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None and spec.type is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = _broadcast_to_and_flatten(out_dims[0], spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name_of(function)}): out_dims must be nested as the outputs are, {spec}; got "
            f"{tree_flatten(out_dims)[1]}"
        )
    return dims


def _is_nest_of_dims(out_dims):
    return all(d is None or isinstance(d, int) for d in tree_flatten(out_dims)[0])


def _map_once(function, leaves, dims, spec, size, out_dims, randomness, kwargs):
    _capture.finish("vmap()")
    level = _levels._vmap_increment_nesting(size, randomness)
    try:
        inputs = [
            leaf if d is None else _levels._add_batch_dim(leaf, d, level)
            for d, leaf in zip(dims, leaves, strict=False)
        ]
        result = function(*tree_unflatten(inputs, spec), **kwargs)
        outputs, out_spec = tree_flatten(result)
        outs = [
            _unbatched(function, o, d, level, size)
            for o, d in zip(outputs, _out_dims_of(function, out_dims, out_spec), strict=False)
        ]
        return outs, out_spec
    finally:
        _levels._decrement_nesting(level)


def _in_chunks(function, leaves, dims, spec, size, out_dims, randomness, kwargs, chunk):
    parts = []
    for start in range(0, size, chunk):
        n = min(chunk, size - start)
        some = [
            leaf if d is None else leaf.narrow(d, start, n)
            for d, leaf in zip(dims, leaves, strict=False)
        ]
        parts.append(_map_once(function, some, dims, spec, n, out_dims, randomness, kwargs))
    out_spec = parts[0][1]
    joined = []
    for i, d in enumerate(_out_dims_of(function, out_dims, out_spec)):
        column = [outs[i] for outs, _ in parts]
        joined.append(column[0] if d is None else facula.cat(column, d))
    return joined, out_spec


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """Map a function over a dimension of its arguments, all at once.

    Args:
        func (callable): takes Tensors, and nests of them, of one sample; returns Tensors.
        in_dims (int, None or nest): the dimension of each argument to map over; None: none.
        out_dims (int, None or nest): where the mapped dimension goes in the results.
        randomness (str): "error", "different" or "same" random numbers for each sample.
        chunk_size (int): at most so many samples at a time; None: all.

    Returns:
        callable with func's arguments, batched.

    Raises:
        ValueError: in_dims or out_dims do not fit, sizes differ, or func returns something else.

    Example:
        >>> facula.func.vmap(facula.dot)(facula.ones(3, 5), facula.ones(3, 5))
        tensor([5., 5., 5.])
    """
    if chunk_size is not None and not (chunk_size == "auto" or chunk_size > 0):
        raise ValueError(f"vmap(): chunk_size must be None or positive; got {chunk_size}")
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"vmap(): randomness must be 'error', 'different' or 'same'; got {randomness!r}"
        )

    def mapped(*args, **kwargs):
        leaves, dims, spec, size = _batched_inputs(func, in_dims, args)
        if chunk_size is not None and chunk_size < size:
            outs, out_spec = _in_chunks(
                func, leaves, dims, spec, size, out_dims, randomness, kwargs, chunk_size
            )
        else:
            outs, out_spec = _map_once(func, leaves, dims, spec, size, out_dims, randomness, kwargs)
        return tree_unflatten(outs, out_spec)

    options = in_dims, out_dims, randomness, chunk_size
    return _capture.transform("vmap", *options)(mapped, func)
