"""PyTorch's names with an underscore that programs call for nested tensors."""

from __future__ import annotations

import facula

from .base import Nested, nested_of
from .construct import nested_tensor_from_jagged
from .nested_int import JaggedSpec
from .nested_tensor import NestedTensor
from .padding import from_padded
from .strided import strided_of


def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    """A strided nested tensor of the rows of a padded one, cut to the sizes given.

    Args:
        padded (Tensor): [batch, ...].
        cpu_nested_shape_example (Tensor): of int64, [batch, dims]: the size of each.
        fuse_transform_0213 (bool): must be False.

    Returns:
        Tensor

    Raises:
        NotImplementedError: with fuse_transform_0213.
    """
    if fuse_transform_0213:
        raise NotImplementedError("_nested_from_padded(): fuse_transform_0213=True is missing")
    sizes = cpu_nested_shape_example.tolist()
    if len(sizes) != padded.shape[0] or any(len(s) != padded.dim() - 1 for s in sizes):
        raise RuntimeError(
            f"_nested_from_padded(): sizes must be [{padded.shape[0]}, {padded.dim() - 1}]; got "
            f"{sizes}"
        )
    for size in sizes:
        if any(not 0 <= n <= whole for n, whole in zip(size, padded.shape[1:], strict=True)):
            raise RuntimeError(
                f"_nested_from_padded(): sizes must lie in {tuple(padded.shape[1:])}; got {size}"
            )
    parts = [row[tuple(map(slice, size))] for row, size in zip(padded, sizes, strict=True)]
    return strided_of(parts, padded)


def _nested_from_padded_tensor(
    padded, offsets, dummy, ragged_idx=1, min_seqlen=None, max_seqlen=None, sum_S=None
):
    """A jagged nested tensor of the rows of a padded one.

    Args:
        padded (Tensor): [batch, ...].
        offsets (Tensor): of ints, [batch + 1]: the lengths are their differences.
        dummy: not used.
        ragged_idx (int): the dimension that is ragged.
        min_seqlen, max_seqlen (Tensor), sum_S (int): not used; the offsets tell them.

    Returns:
        Tensor
    """
    if not 1 <= ragged_idx < padded.dim():
        raise RuntimeError(
            f"_nested_from_padded_tensor(): ragged_idx must be one of 1 to {padded.dim() - 1}; got "
            f"{ragged_idx}"
        )
    spec = JaggedSpec(offsets, None, ragged_idx)
    longest = spec.known().max_seqlen
    if spec.batch != padded.shape[0] or longest > padded.shape[ragged_idx] or spec.first_row():
        raise RuntimeError(
            f"_nested_from_padded_tensor(): the sequences must lie in shape {tuple(padded.shape)}; "
            f"got offsets {offsets.tolist()}"
        )
    return nested_of(from_padded(padded, spec), spec, NestedTensor)


def _nested_tensor_from_mask_left_aligned(t, mask):
    """Whether each row of a mask is True up to some place, and False from there.

    Args:
        t (Tensor): [batch, size, ...].
        mask (Tensor): of bool, [batch, size].

    Returns:
        bool
    """
    _check_mask(t, mask)
    lengths = mask.sum(1)
    places = facula.arange(mask.shape[1], device=mask.device)
    return bool((mask == (places < lengths.unsqueeze(1))).all())


def _check_mask(t, mask):
    if mask.dtype != facula.bool or mask.dim() != 2 or mask.shape != t.shape[:2]:
        raise RuntimeError(
            f"_nested_tensor_from_mask(): mask must be of bool and shape {tuple(t.shape[:2])}; got "
            f"{mask.dtype} and {tuple(mask.shape)}"
        )


def _nested_tensor_from_mask(t, mask, mask_check=True):
    """A strided nested tensor of the elements of each row that a mask lets through.

    Args:
        t (Tensor): [batch, size, ...].
        mask (Tensor): of bool, [batch, size]; each row True first, then False.
        mask_check (bool): whether the mask is looked at.

    Returns:
        Tensor

    Raises:
        RuntimeError: a row of the mask is True after it was False.
    """
    _check_mask(t, mask)
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    lengths = mask.sum(1).tolist()
    return strided_of([row[:n] for row, n in zip(t, lengths, strict=True)], t)


def _nested_view_from_jagged(
    self, offsets, dummy, lengths=None, ragged_idx=1, min_seqlen=None, max_seqlen=None
):
    """A jagged nested tensor that shares the memory of values."""
    return nested_tensor_from_jagged(self, offsets, lengths, ragged_idx)


def _nested_get_jagged_dummy(any):
    """What PyTorch's functions take as `dummy`; functions here ignore it."""
    return facula.empty(0)


def _checked(self):
    if not isinstance(self, Nested) or self.layout != facula.jagged:
        raise RuntimeError(f"expected a jagged nested tensor; got {type(self).__name__}")
    return self


def _nested_get_values(self):
    """The values of a jagged tensor."""
    return _checked(self).values()


def _nested_get_offsets(self):
    """The offsets of a jagged tensor."""
    return _checked(self).offsets()


def _nested_get_lengths(self):
    """The lengths of a jagged tensor with rows between sequences."""
    return _checked(self).lengths()


def _nested_get_ragged_idx(self):
    """The ragged dimension of a jagged tensor."""
    return _checked(self)._ragged_idx


def _nested_get_min_seqlen(self):
    """The least length in a jagged tensor."""
    return _checked(self)._min_seqlen


def _nested_get_max_seqlen(self):
    """The greatest length in a jagged tensor."""
    return _checked(self)._max_seqlen
