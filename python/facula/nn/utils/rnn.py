"""Batches of sequences of several lengths: padded, and packed without padding."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

import facula

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]

PackedSequence_ = namedtuple(
    "PackedSequence_",
    ["data", "batch_sizes", "sorted_indices", "unsorted_indices"],
    defaults=(None, None, None),
)


class PackedSequence(PackedSequence_):
    """The rows of all steps of a batch of sequences, the longest sequence first.

    Args:
        data (Tensor): (rows, *): the first elements of all sequences, then the second ones...
        batch_sizes (Tensor): int64 on the CPU: how many sequences have a first element, a second...
        sorted_indices (Tensor): the order that brought the batch into its order, or None.
        unsorted_indices (Tensor): the order that brings it back; found from the other.

    `pack_sequence` and `pack_padded_sequence` make them.

    Raises:
        ValueError: batch_sizes on another device.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            # A pair, as older versions took it.
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(
                    "PackedSequence: expected data and batch_sizes, or a pair of them; "
                    f"got {type(data).__name__}"
                )
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "PackedSequence: batch_sizes must be on the CPU (pack_sequence and "
                f"pack_padded_sequence put it there); got {batch_sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same on another device or of another dtype; itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        others = {k: v for k, v in kwargs.items() if k in ("device", "non_blocking")}
        others["device"] = data.device
        orders = (
            None if t is None else t.to(**others)
            for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, *orders)

    def pin_memory(self):
        """The same in page-locked memory."""
        orders = (
            None if t is None else t.pin_memory()
            for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(self.data.pin_memory(), self.batch_sizes, *orders)

    def cpu(self, *args, **kwargs):
        """The same on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def cuda(self, *args, **kwargs):
        """The same on a CUDA device."""
        if self.data.is_cuda and not args and not kwargs:
            return self
        return self.to(*args, **{"device": "cuda", **kwargs})

    def double(self):
        """The same with data of dtype float64."""
        return self.to(dtype=facula.float64)

    def float(self):
        """The same with data of dtype float32."""
        return self.to(dtype=facula.float32)

    def half(self):
        """The same with data of dtype float16."""
        return self.to(dtype=facula.float16)

    def long(self):
        """The same with data of dtype int64."""
        return self.to(dtype=facula.int64)

    def int(self):
        """The same with data of dtype int32."""
        return self.to(dtype=facula.int32)

    def short(self):
        """The same with data of dtype int16."""
        return self.to(dtype=facula.int16)

    def char(self):
        """The same with data of dtype int8."""
        return self.to(dtype=facula.int8)

    def byte(self):
        """The same with data of dtype uint8."""
        return self.to(dtype=facula.uint8)

    @property
    def is_cuda(self):
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether the data is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation):
    """The permutation that undoes another.

    Args:
        permutation (Tensor): int64, 1-D; or None.

    Returns:
        Tensor, or None for None.
    """
    if permutation is None:
        return None
    places = facula.arange(permutation.numel(), device=permutation.device)
    return facula.empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Leave the padding out of a batch.

    Args:
        input (Tensor): (steps, batch, *), or (batch, steps, *) with batch_first.
        lengths (Tensor or list of int): of the sequences, at least 1; on the CPU.
        batch_first (bool): which of the two.
        enforce_sorted (bool): lengths must decrease; else the batch is sorted here.

    Returns:
        PackedSequence.

    Raises:
        RuntimeError: lengths that are not positive, do not fit the batch, or grow.

    Example:
        >>> facula.nn.utils.rnn.pack_padded_sequence(facula.ones(3, 2), [3, 1]).batch_sizes
        tensor([2, 1, 1])
    """
    lengths = facula.as_tensor(lengths, dtype=facula.int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = facula.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = facula._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Fill a packed batch up to one length.

    Args:
        sequence (PackedSequence): to be filled up.
        batch_first (bool): the result is (batch, steps, *), not (steps, batch, *).
        padding_value (float): what stands behind the ends.
        total_length (int): of the result; None: of the longest sequence.

    Returns:
        tuple of Tensor: the batch, in the order that it had before it was packed, and the lengths.

    Raises:
        ValueError: total_length is less than the longest sequence.
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "pad_packed_sequence: total_length must be at least the length of the longest "
            f"sequence, {longest}; got {total_length}"
        )
    padded, lengths = facula._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length or -1
    )
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack sequences of several lengths, filled up to the longest.

    Args:
        sequences (iterable of Tensors, or Tensor): (length, *) each.
        batch_first (bool): the result is (batch, steps, *), not (steps, batch, *).
        padding_value (float): what is filled in.
        padding_side (str): "right" or "left".

    Raises:
        RuntimeError: something that is not iterable, no sequences, or sizes that do not fit.

    Example:
        >>> facula.nn.utils.rnn.pad_sequence([facula.ones(2), facula.ones(3)], batch_first=True)
        tensor([[1., 1., 0.],
                [1., 1., 1.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got {type(sequences)}"
        )
    parts = sequences.unbind(0) if isinstance(sequences, facula.Tensor) else tuple(sequences)
    return facula._C._nn.pad_sequence(parts, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Take a filled-up batch apart.

    Args:
        padded_sequences (Tensor): (steps, batch, *), or (batch, steps, *) with batch_first.
        lengths (Tensor): of the sequences.
        batch_first (bool): which of the two.

    Returns:
        list of Tensor: (length, *) each.
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    pairs = zip(padded_sequences.unbind(0), lengths, strict=True)
    return [sequence[: int(length)] for sequence, length in pairs]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack sequences of several lengths.

    Args:
        sequences (list of Tensors): (length, *) each.
        enforce_sorted (bool): they must come with the longest first; else they are sorted here.

    Returns:
        PackedSequence.

    Raises:
        RuntimeError: sequences that are empty, or grow.
    """
    lengths = facula.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """Take a packed batch apart; returns a list of Tensors (length, *), in their first order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
