"""A batch in microbatches, and back."""

from __future__ import annotations

import operator

import facula
from facula.utils import _pytree as pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]

DEFAULT_CHUNK_DIM = 0


class TensorChunkSpec:
    """The dimension along which a tensor is cut into microbatches.

    Args:
        split_dim (int): the dimension.

    Example:
        >>> from facula.distributed.pipelining.microbatch import TensorChunkSpec
        >>> TensorChunkSpec.from_tuple((0, 1))[1].split_dim
        1
    """

    def __init__(self, split_dim):
        self.split_dim = split_dim

    def __repr__(self):
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self):
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims):
        """Specs of several dimensions, for positional arguments."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims):
        """Specs of several dimensions, for arguments by name."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)


class _CustomReducer:
    """Says that outputs are combined by a function instead of joined."""

    def __init__(self, init_value, reduce_fn):
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    pass


sum_reducer = _LossReducer(0.0, operator.add)


class _Replicate:
    """Says that an argument is given to every microbatch as it is."""


def _default_spec(value):
    return TensorChunkSpec(DEFAULT_CHUNK_DIM) if isinstance(value, facula.Tensor) else _Replicate()


def _leaf_specs(value, spec):
    """A spec for each leaf of `value`; one for a whole container goes for all in it."""
    leaves, structure = pytree.tree_flatten(value)
    if spec is None:
        return leaves, [_default_spec(leaf) for leaf in leaves], structure
    if isinstance(spec, (TensorChunkSpec, _Replicate)) or spec is _Replicate:
        return leaves, [spec] * len(leaves), structure
    specs, spec_structure = pytree.tree_flatten(spec, is_leaf=lambda s: s is None)
    if len(specs) != len(leaves):
        raise ValueError(
            "split_args_kwargs_into_chunks(): expected a spec of the structure of its argument, "
            f"{structure}; got {spec_structure}"
        )
    return leaves, specs, structure


def _split_leaf(leaf, spec, chunks):
    if not isinstance(spec, TensorChunkSpec):
        return [leaf] * chunks
    if not isinstance(leaf, facula.Tensor):
        raise ValueError(
            "split_args_kwargs_into_chunks(): expected a tensor for a TensorChunkSpec; "
            f"got {type(leaf).__name__}"
        )
    if leaf.dim() == 0:
        raise ValueError(
            "split_args_kwargs_into_chunks(): expected a tensor with a dimension to cut; got "
            "one of no dimensions (give it a _Replicate)"
        )
    return list(facula.chunk(leaf, chunks, spec.split_dim))


def split_args_kwargs_into_chunks(
    args, kwargs, chunks, args_chunk_spec=None, kwargs_chunk_spec=None
):
    """Cut the arguments of a model into microbatches.

    Args:
        args (tuple): positional arguments, containers of tensors and other values.
        kwargs (dict): arguments by name, or None.
        chunks (int): how many microbatches.
        args_chunk_spec (tuple): a TensorChunkSpec for each; default dimension 0 of tensors.
        kwargs_chunk_spec (dict): likewise.

    Returns:
        tuple: a list of args and a list of kwargs, fewer than `chunks` if a tensor is too small

    Raises:
        AssertionError: the specs are for other arguments.
        ValueError: tensors give different numbers of chunks, or cannot be cut.

    Example:
        >>> from facula.distributed.pipelining.microbatch import split_args_kwargs_into_chunks
        >>> args, kwargs = split_args_kwargs_into_chunks((facula.arange(4), 7), None, 2)
        >>> args
        [(tensor([0, 1]), 7), (tensor([2, 3]), 7)]
    """
    named = {**dict(enumerate(args)), **(kwargs or {})}
    specs = dict.fromkeys(named)
    given = ((range(len(args)), args_chunk_spec), (kwargs or {}, kwargs_chunk_spec))
    for keys, spec in given:
        if spec is None:
            continue
        by_key = dict(spec) if isinstance(spec, dict) else dict(enumerate(spec))
        if set(by_key) != set(keys):
            raise AssertionError(
                "split_args_kwargs_into_chunks(): expected specs of the arguments "
                f"{list(keys)}; got {list(by_key)}"
            )
        specs.update(by_key)

    flat = {key: _leaf_specs(value, specs[key]) for key, value in named.items()}
    pieces = {
        key: [_split_leaf(x, s, chunks) for x, s in zip(leaves, leaf_specs, strict=True)]
        for key, (leaves, leaf_specs, _) in flat.items()
    }
    counts = {
        len(piece)
        for key, (_, leaf_specs, _) in flat.items()
        for piece, spec in zip(pieces[key], leaf_specs, strict=True)
        if isinstance(spec, TensorChunkSpec)
    }
    if len(counts) > 1:
        raise ValueError(
            "split_args_kwargs_into_chunks(): expected tensors that give the same number of "
            f"chunks; got {sorted(counts)}"
        )
    count = counts.pop() if counts else chunks

    def chunk(key, i):
        return pytree.tree_unflatten([piece[i] for piece in pieces[key]], flat[key][2])

    all_args = [tuple(chunk(key, i) for key in range(len(args))) for i in range(count)]
    return all_args, [{key: chunk(key, i) for key in kwargs or {}} for i in range(count)]


def _merge_leaf(values, spec):
    if isinstance(spec, _CustomReducer):
        total = spec.init_value
        for value in values:
            total = spec.reduce_fn(total, value)
        return total
    if isinstance(spec, TensorChunkSpec):
        return facula.cat(values, spec.split_dim)
    return values[0]


def merge_chunks(chunks, chunk_spec):
    """Join the outputs of microbatches.

    Args:
        chunks (list): an output for each microbatch, all of one structure.
        chunk_spec: TensorChunkSpecs and reducers in that structure, or None: tensors are joined
            along dimension 0, of other values the first is taken.

    Returns:
        what the model returns for the whole batch

    Example:
        >>> from facula.distributed.pipelining.microbatch import merge_chunks
        >>> merge_chunks([facula.zeros(1), facula.ones(2)], None)
        tensor([0., 1., 1.])
    """
    leaves = [pytree.tree_flatten(chunk)[0] for chunk in chunks]
    first, specs, structure = _leaf_specs(chunks[0], _without_reducers(chunk_spec))
    if chunk_spec is not None:
        found = pytree.tree_flatten(chunk_spec)[0]
        specs = found if len(found) == len(first) else specs
    if any(len(other) != len(first) for other in leaves):
        raise ValueError(
            "merge_chunks(): expected outputs of one structure; got "
            f"{sorted({len(other) for other in leaves})} values"
        )
    merged = [_merge_leaf([leaf[i] for leaf in leaves], s) for i, s in enumerate(specs)]
    return pytree.tree_unflatten(merged, structure)


def _without_reducers(spec):
    return _Replicate() if isinstance(spec, _CustomReducer) else spec
