"""Jagged values to padded tensors and back; both ways are gathers, so gradients follow."""

from __future__ import annotations

import facula

from .nested_int import JaggedSpec


def rows_of(values, spec):
    """The rows of all sequences along dimension 0, without those between sequences.

    Args:
        values (Tensor): the values.
        spec (JaggedSpec): where the sequences lie.

    Returns:
        Tensor: [rows, ...]
    """
    rows = values.movedim(spec.inner, 0) if spec.inner else values
    known = spec.known()
    if sum(known.lengths) == rows.shape[0] and (spec.lengths is None or _side_by_side(known)):
        return rows
    which, position = spec.rows()
    starts = facula.tensor(known.starts, dtype=facula.int64, device=which.device)
    return rows.index_select(0, starts.index_select(0, which) + position)


def _side_by_side(known):
    end = 0
    for start, length in zip(known.starts, known.lengths, strict=True):
        if start != end:
            return False
        end = start + length
    return True


def compact(values, spec):
    """The values without rows between sequences, and their spec.

    Args:
        values (Tensor): the values.
        spec (JaggedSpec): where the sequences lie.

    Returns:
        (Tensor, JaggedSpec)
    """
    known = spec.known()
    rows = rows_of(values, spec).movedim(0, spec.inner)
    ends = [0]
    for length in known.lengths:
        ends.append(ends[-1] + length)
    offsets = facula.tensor(ends, dtype=spec.offsets.dtype, device=spec.offsets.device)
    return rows, JaggedSpec(offsets, None, spec.ragged_idx)


def to_padded(values, spec, padding, size=None):
    """The sequences as rows of a tensor, with padding after the shorter ones.

    Args:
        values (Tensor): the values.
        spec (JaggedSpec): where the sequences lie.
        padding (number): what fills the rest.
        size (int): the ragged dimension's size; longer sequences are cut. None for the longest.

    Returns:
        Tensor: of the nested tensor's dimensions.
    """
    known = spec.known()
    size = known.max_seqlen if size is None else size
    rows = rows_of(values, spec)
    rest = rows.shape[1:]
    if all(length == size for length in known.lengths):
        return rows.reshape(spec.batch, size, *rest).movedim(1, spec.ragged_idx)
    which, position = spec.rows()
    if size < max(known.lengths, default=0):
        kept = (position < size).nonzero().squeeze(1)
        rows = rows.index_select(0, kept)
        which, position = which.index_select(0, kept), position.index_select(0, kept)
    flat = rows.new_full((spec.batch * size, *rest), padding)
    flat = flat.index_copy(0, which * size + position, rows)
    return flat.view(spec.batch, size, *rest).movedim(1, spec.ragged_idx)


def from_padded(padded, spec):
    """The values of sequences that lie in the rows of a padded tensor.

    Args:
        padded (Tensor): of the nested tensor's dimensions.
        spec (JaggedSpec): with sequences side by side.

    Returns:
        Tensor: the values.
    """
    padded = padded.movedim(spec.ragged_idx, 1)
    batch, size = padded.shape[:2]
    flat = padded.reshape(batch * size, *padded.shape[2:])
    known = spec.known()
    if not all(length == size for length in known.lengths):
        which, position = spec.rows()
        flat = flat.index_select(0, which * size + position)
    return flat.movedim(0, spec.inner)
