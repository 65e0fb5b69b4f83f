"""Masks of attention by blocks of queries and keys."""

from __future__ import annotations

import inspect
from enum import Enum
from functools import reduce

import facula

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class _ModificationType(Enum):
    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


def _get_mod_type(fn):
    """Whether a function modifies scores (5 arguments) or is a mask (4)."""
    parameters = inspect.signature(fn).parameters.values()
    number = sum(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        for p in parameters
    )
    kinds = {5: _ModificationType.SCORE_MOD, 4: _ModificationType.MASK_MOD}
    return kinds.get(number, _ModificationType.UNKNOWN)


def for_all_places(fn, is_score_mod):
    """`fn` of single numbers as a function of whole index vectors, over (B, H, Q, KV).

    Args:
        fn: function (b, h, q_idx, kv_idx), or (score, b, h, q_idx, kv_idx).
        is_score_mod: which of the two.
    """
    first = (0,) if is_score_mod else ()
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None),
                 (0, None, None, None)):  # fmt: skip
        fn = facula.vmap(fn, in_dims=(*first, *dims))
    return fn


def index_vectors(B, H, Q_LEN, KV_LEN, device):
    """The four vectors of indices; returns a tuple of int64 Tensors."""
    return tuple(facula.arange(n, device=device) for n in (B, H, Q_LEN, KV_LEN))


def noop_mask(batch, head, token_q, token_kv):
    """A mask that lets everything through."""
    return batch.new_ones(size=(), dtype=facula.bool, device=batch.device)


def _combined(name, mask_mods, operator):
    for fn in mask_mods:
        if not callable(fn):
            raise RuntimeError(f"{name}(): masks must be functions; got {fn!r}")

    def mask_mod(b, h, q_idx, kv_idx):
        start = b.new_full((), operator == "and", dtype=facula.bool)
        results = (fn(b, h, q_idx, kv_idx) for fn in mask_mods)
        combine = (lambda x, y: x & y) if operator == "and" else (lambda x, y: x | y)
        return reduce(combine, results, start)

    return mask_mod


def or_masks(*mask_mods):
    """A mask that lets through what any of the given ones does; returns a function."""
    return _combined("or_masks", mask_mods, "or")


def and_masks(*mask_mods):
    """A mask that lets through what all of the given ones do; returns a function."""
    return _combined("and_masks", mask_mods, "and")


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """A mask (or the modified scores of zeros) written out.

    Args:
        mod_fn: function (b, h, q_idx, kv_idx) to a bool, or (score, b, h, q_idx, kv_idx) to a
            score.
        B, H: numbers of batches and heads; 1 when None.
        Q_LEN, KV_LEN: lengths of the sequences of queries and keys.
        device: of the result.

    Returns:
        Tensor (B, H, Q_LEN, KV_LEN).

    Raises:
        AssertionError: a function of another number of arguments.
    """
    B, H = B or 1, H or 1
    kind = _get_mod_type(mod_fn)
    if kind == _ModificationType.UNKNOWN:
        raise AssertionError("create_mask(): mod_fn must take 4 or 5 arguments")
    indices = index_vectors(B, H, Q_LEN, KV_LEN, device)
    if kind == _ModificationType.MASK_MOD:
        mask = for_all_places(mod_fn, False)(*indices)
        return mask.expand(B, H, Q_LEN, KV_LEN)
    zeros = facula.zeros(B, H, Q_LEN, KV_LEN, device=device)
    return facula.where(for_all_places(mod_fn, True)(zeros, *indices) == float("-inf"), False, True)


def _ordered(blocks):
    """A mask of blocks as counts and indices: int32 numbers of true ones of each row, and their
    columns before all others."""
    blocks = blocks.to(facula.int32)
    counts = blocks.sum(dim=-1, dtype=facula.int32)
    order = facula.argsort(blocks, dim=-1, descending=True, stable=True)
    return counts, order.to(facula.int32).contiguous()


def _dense(counts, indices):
    """The int32 mask of blocks that `_ordered` was made of."""
    columns = indices.shape[-1]
    is_used = facula.arange(columns, device=indices.device) < counts.unsqueeze(-1)
    zeros = facula.zeros_like(indices)
    return zeros.scatter(-1, indices.long(), is_used.to(facula.int32))


def _transposed(counts, indices):
    return _ordered(_dense(counts, indices).transpose(-2, -1))


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


class BlockMask:
    """A mask of attention that knows which blocks of queries and keys it leaves out.

    `create_block_mask` and `BlockMask.from_kv_blocks` make one. For each block of queries
    `kv_num_blocks` counts the blocks of keys that are masked in part and `kv_indices` begins with
    their numbers; `full_...` are the blocks without a mask, and `q_...` the same from the keys'
    side. All are int32, (B, H, rows) and (B, H, rows, columns).
    """

    _TENSOR_ATTRS = [
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
        "dq_write_order",
        "dq_write_order_full",
    ]
    _CONTEXT_ATTRS = ["seq_lengths", "BLOCK_SIZE", "mask_mod"]

    def __init__(
        self,
        seq_lengths,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks,
        full_kv_indices,
        q_num_blocks,
        q_indices,
        full_q_num_blocks,
        full_q_indices,
        BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod=noop_mask,
        *,
        dq_write_order=None,
        dq_write_order_full=None,
        dq_kv_order=None,
        dq_kv_order_spt=None,
    ):
        if kv_indices.dim() < 2:
            raise RuntimeError(
                f"BlockMask: kv_indices must have at least 2 dimensions; got {kv_indices.dim()}"
            )
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("BlockMask: full_kv_num_blocks and full_kv_indices go together")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = _pair(BLOCK_SIZE)
        self.mask_mod = mask_mod
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=None,
        seq_lengths=None,
        compute_q_blocks=True,
        *,
        dq_write_order=None,
        dq_write_order_full=None,
        dq_kv_order=None,
    ):
        """A mask of the blocks of keys for each block of queries.

        Args:
            kv_num_blocks, kv_indices: of the blocks masked in part, as the class describes.
            full_kv_num_blocks, full_kv_indices: of the blocks without a mask.
            BLOCK_SIZE: int, or pair for queries and keys.
            mask_mod: function (b, h, q_idx, kv_idx) to a bool.
            seq_lengths: pair of the lengths; those of whole blocks when None.
            compute_q_blocks: whether the keys' side is computed.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError(
                f"BlockMask: kv_indices must have at least 2 dimensions; got {kv_indices.dim()}"
            )
        sizes = _pair(BLOCK_SIZE)
        q_side, full_q_side = (None, None), (None, None)
        if compute_q_blocks:
            q_side = _transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None:
                full_q_side = _transposed(full_kv_num_blocks, full_kv_indices)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *q_side,
            *full_q_side,
            sizes,
            mask_mod or noop_mask,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order,
        )

    def as_tuple(self, flatten=True):
        """Everything as a tuple, with lengths and block sizes as pairs unless `flatten`."""
        lengths = tuple(self.seq_lengths) if flatten else (tuple(self.seq_lengths),)
        sizes = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        tensors = (getattr(self, name) for name in self._TENSOR_ATTRS)
        return (
            *lengths,
            *tensors,
            self.dq_kv_order,
            self.dq_kv_order_spt,
            *sizes,
            self.mask_mod,
        )

    @property
    def shape(self):
        """(B, H, length of queries, length of keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """The number of places of the mask."""
        result = 1
        for size in self.shape:
            result *= size
        return result

    def to_dense(self):
        """Which blocks are used; int32, (B, H, blocks of queries, blocks of keys)."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return dense
        return dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def sparsity(self):
        """The share of blocks that are left out, in percent."""
        dense = self.to_dense()
        return 100 * (1 - dense.sum().item() / dense.numel())

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        # A number keeps its dimension, so that the result has batches and heads again.
        index = tuple(
            (slice(i, i + 1) if i != -1 else slice(-1, None)) if isinstance(i, int) else i
            for i in index
        )
        parts = [getattr(self, name) for name in self._TENSOR_ATTRS]
        parts = [None if part is None else part[index] for part in parts]
        return BlockMask.from_kv_blocks(
            *parts[:4],
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def to(self, device):
        """The same on another device; returns a BlockMask."""
        moved = [getattr(self, name) for name in self._TENSOR_ATTRS]
        moved = [None if part is None else part.to(device) for part in moved]
        return BlockMask(
            self.seq_lengths,
            *moved[:8],
            self.BLOCK_SIZE,
            self.mask_mod,
            dq_write_order=moved[8],
            dq_write_order_full=moved[9],
            dq_kv_order=self.dq_kv_order,
            dq_kv_order_spt=self.dq_kv_order_spt,
        )

    def __repr__(self):
        lines = [
            f"    {name}={'None' if value is None else _size_text(value)},"
            for name, value in ((n, getattr(self, n)) for n in self._TENSOR_ATTRS[:8])
        ]
        name = getattr(self.mask_mod, "__name__", type(self.mask_mod).__name__)
        lines += [
            f"    BLOCK_SIZE={self.BLOCK_SIZE},",
            f"    shape={self.shape},",
            f"    sparsity={self.sparsity():.2f}%,",
            f"    mask_mod={name}",
        ]
        return "BlockMask(\n" + "\n".join(lines) + "\n)"

    def __str__(self):
        text = self.to_string()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{text}\n)"

    def to_string(self, grid_size=(20, 20), limit=4):
        """A drawing of the blocks of each batch and head; returns a str.

        Args:
            grid_size: greatest number of rows and columns; -1 for no limit.
            limit: how many batches and heads are drawn.
        """
        grid_size = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        dense = self.to_dense()
        places = [()]
        for size in dense.shape[:-2]:
            places = [(*place, i) for place in places for i in range(size)]
        parts = []
        for place in places[:limit]:
            rows = _drawing(dense[place], grid_size)
            parts.append("\n".join([str(place), *rows]))
        text = "\n\n".join(parts)
        if len(places) > limit:
            text += (
                "\n\n...\nTo print out more, set BlockMask.to_string(limit=N)\nYou can also index "
                "(BlockMask[batch, head]) to choose a specific batch or head"
            )
        return text


def _size_text(tensor):
    return f"{tensor.shape}"


def _drawing(blocks, grid_size):
    """Rows of two characters for each block, or for each group of blocks of a large mask."""
    blocks = blocks.float()
    for dim, most in enumerate(grid_size):
        size = blocks.shape[dim]
        if most == -1 or size <= most:
            continue
        step = -(-size // most)
        parts = [part.mean(dim=dim, keepdim=True) for part in blocks.split(step, dim=dim)]
        blocks = facula.cat(parts, dim=dim)
    signs = {0.0: "  ", 1.0: "██"}
    return ["".join(signs.get(value, "░░") for value in row) for row in blocks.tolist()]


def _sliced_mask_mod_error(batch, head, token_q, token_kv):
    raise RuntimeError(
        "BlockMask: a slice has no mask of its own, because its indices are not those of the "
        "whole; set mask_mod"
    )


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False,
    separate_full_blocks=True,
    compute_dq_write_order=False,
    dq_kv_order=True,
):
    """The blocks of a mask.

    Args:
        mask_mod: function (b, h, q_idx, kv_idx) to a bool Tensor: whether a query sees a key.
        B, H: numbers of batches and heads that have masks of their own; 1 when None.
        Q_LEN, KV_LEN: lengths of the sequences of queries and keys.
        device: of the result.
        BLOCK_SIZE: int, or pair for queries and keys.
        separate_full_blocks: tell blocks without a mask from those masked in part.
        compute_dq_write_order, dq_kv_order: for kernels of GPUs; no difference here.

    Returns:
        BlockMask.

    Example:
        >>> from facula.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256)
        >>> mask.sparsity()
        25.0
    """
    if _get_mod_type(mask_mod) != _ModificationType.MASK_MOD:
        raise AssertionError(
            "create_block_mask(): mask_mod must take (b, h, q_idx, kv_idx); got "
            f"{inspect.signature(mask_mod)}"
        )
    q_size, kv_size = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    pad = (0, -KV_LEN % kv_size, 0, -Q_LEN % q_size)
    mask = facula.nn.functional.pad(mask, pad, value=False)
    rows, columns = mask.shape[-2] // q_size, mask.shape[-1] // kv_size
    counts = mask.view(*mask.shape[:-2], rows, q_size, columns, kv_size).sum(dim=(-3, -1))
    is_full = (counts == q_size * kv_size) if separate_full_blocks else None
    is_part = (counts > 0) & ~is_full if separate_full_blocks else counts > 0
    return BlockMask.from_kv_blocks(
        *_ordered(is_part),
        *(_ordered(is_full) if separate_full_blocks else (None, None)),
        BLOCK_SIZE=(q_size, kv_size),
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )
