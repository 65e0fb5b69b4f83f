"""NestedTensor: sequences of different lengths side by side in one tensor (layout jagged)."""

from __future__ import annotations

import facula

from .base import Nested, history_of, nested_of
from .nested_int import JaggedSpec, Raggedness

__all__ = [
    "NestedTensor",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]


class NestedTensor(Nested):
    """Sequences of different lengths side by side in one tensor; `facula.nested` makes them.

    Args:
        values (Tensor): the rows of all sequences; the ragged dimension counts them.
        spec (JaggedSpec): where the sequences lie.
        requires_grad (bool): whether the tensor is a leaf that collects gradients.

    Example:
        >>> values, offsets = facula.arange(4.0), facula.tensor([0, 1, 4])
        >>> facula.nested.nested_tensor_from_jagged(values, offsets).unbind()
        (tensor([0.]), tensor([1., 2., 3.]))
    """

    @classmethod
    def _rules(cls):
        from . import ops

        return ops.RULES

    @property
    def shape(self):
        """The sizes; that of the ragged dimension is a NestedInt."""
        inner, at = self._values.shape, self._spec.inner
        size = (self._spec.batch, *inner[:at], self._spec.raggedness.size, *inner[at + 1 :])
        return facula.Size(size)

    _size = shape

    def size(self, dim=None):
        """The sizes, or one of them.

        Args:
            dim (int): the dimension; None for all.

        Returns:
            Size or int

        Example:
            >>> facula.nested.nested_tensor([[1], [2, 3]], layout=facula.jagged).size(0)
            2
        """
        if dim is None:
            return self.shape
        return self.shape[checked_dim(dim, self.dim())]

    def stride(self, dim=None):
        """The strides; that of the batch is a multiple of the ragged size.

        Args:
            dim (int): the dimension; None for all.

        Returns:
            tuple or int

        Example:
            >>> x = facula.nested.nested_tensor([[1], [2, 3]], layout=facula.jagged)
            >>> x.stride() == (x.size(1), 1)
            True
        """
        inner, at = self._values.stride(), self._spec.inner
        outermost = max([inner[at], *inner[:at]])
        if all(step <= inner[at] for step in inner):
            first = self._spec.raggedness.size * inner[at]
        else:
            widest = inner.index(outermost)
            first = outermost * self._values.shape[widest]
        strides = (first, *inner)
        return strides if dim is None else strides[checked_dim(dim, self.dim())]

    def dim(self):
        """The number of dimensions, that of the batch among them.

        Returns:
            int

        Example:
            >>> facula.nested.nested_tensor([[1], [2, 3]], layout=facula.jagged).dim()
            2
        """
        return self._values.dim() + 1

    @property
    def ndim(self):
        """The number of dimensions, that of the batch among them."""
        return self.dim()

    def numel(self):
        """The number of elements of all sequences.

        Returns:
            int

        Example:
            >>> facula.nested.nested_tensor([[1], [2, 3]], layout=facula.jagged).numel()
            3
        """
        if self._spec.lengths is None:
            return self._values.numel()
        rows = self._values.shape[self._spec.inner]
        return self._values.numel() // max(rows, 1) * sum(self._spec.known().lengths)

    def offsets(self):
        """Where in the values each sequence begins, and the end.

        Returns:
            Tensor: of ints, [batch + 1].

        Example:
            >>> facula.nested.nested_tensor([[1], [2, 3]], layout=facula.jagged).offsets()
            tensor([0, 1, 3])
        """
        return self._spec.offsets

    def lengths(self):
        """The lengths of the sequences, where they do not fill the values; else None.

        Returns:
            Tensor or None: of ints, [batch].

        Example:
            >>> x = facula.nested.narrow(facula.ones(2, 3), 1, 0, facula.tensor([1, 3]),
            ...                          layout=facula.jagged)
            >>> x.lengths()
            tensor([1, 3])
        """
        return self._spec.lengths

    @property
    def _offsets(self):
        return self._spec.offsets

    @property
    def _lengths(self):
        return self._spec.lengths

    @property
    def _ragged_idx(self):
        return self._spec.ragged_idx

    @property
    def _max_seqlen(self):
        return self._spec.known().max_seqlen

    @property
    def _min_seqlen(self):
        return self._spec.known().min_seqlen

    _maybe_max_seqlen, _maybe_min_seqlen = _max_seqlen, _min_seqlen

    def __repr__(self, *, tensor_contents=None):
        with facula._C.DisableTorchFunctionSubclass():
            grad = ""
            if self.grad_fn is not None:
                grad = f", grad_fn={history_of(self)}"
            elif self.requires_grad:
                grad = ", requires_grad=True"
            contiguous = self._spec.lengths is None and self._values.is_contiguous()
            size = ", ".join(map(str, self.shape))
            return (
                f"NestedTensor(size=({size}), offsets={self._spec.offsets}{grad}, "
                f"contiguous={contiguous})"
            )

    def __reduce_ex__(self, protocol):
        spec = self._spec
        with facula._C.DisableTorchFunctionSubclass():
            needs = self.requires_grad
        # The names are those of PyTorch's files.
        state = {
            "values": self._values,
            "offsets": spec.offsets,
            "lengths": spec.lengths,
            "_ragged_idx": spec.ragged_idx,
            "_metadata_cache": {},
            "requires_grad": needs,
        }
        return _rebuild_njt, (state,)


def _rebuild_njt(constructor_kwargs):
    state = constructor_kwargs
    values, offsets, lengths = (state[name] for name in ("values", "offsets", "lengths"))
    ragged_idx = state.get("_ragged_idx", 1)
    for tensor in (values, offsets, *([] if lengths is None else [lengths])):
        if not isinstance(tensor, facula.Tensor) or isinstance(tensor, Nested):
            raise RuntimeError("nested: values, offsets and lengths must be plain tensors")
    if not isinstance(ragged_idx, int) or not 1 <= ragged_idx <= values.dim():
        raise RuntimeError(f"nested: the ragged dimension must be one of 1 to {values.dim()}")
    if offsets.dim() != 1 or not len(offsets):
        raise RuntimeError("nested: offsets must be of one dimension")
    if lengths is not None and lengths.shape != (offsets.shape[0] - 1,):
        raise RuntimeError("nested: lengths must be one fewer than offsets")
    spec = JaggedSpec(offsets, lengths, ragged_idx)
    if not values.is_meta:
        _check_parts(values, spec)
    return NestedTensor(values, spec, bool(state.get("requires_grad")))


def _check_parts(values, spec):
    """Sequences that do not lie in the values would be read from other memory or not at all."""
    rows, known = values.shape[spec.inner], spec.known()
    ends = [a + n for a, n in zip(known.starts, known.lengths, strict=True)]
    if min(known.lengths, default=0) < 0 or max(ends, default=0) > rows or spec.first_row() < 0:
        raise RuntimeError(
            f"nested: the sequences must lie in the {rows} rows of the values; got offsets "
            f"{spec.offsets.tolist()} and lengths {known.lengths}"
        )


def checked_dim(dim, ndim):
    """A dimension counted from the front.

    Raises:
        IndexError: it is out of range.
    """
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


def jagged_from_list(tensors, offsets=None, dtype=None, device=None):
    """A jagged tensor of copies of tensors, with their history.

    Args:
        tensors (list of Tensor): of one dtype; their sizes differ in one dimension at most.
        offsets (Tensor): those of another jagged tensor with the same lengths; None for new ones.
        dtype (dtype), device (device): None for those of the tensors.

    Returns:
        (NestedTensor, Tensor): the tensor and its offsets.

    Raises:
        RuntimeError: the tensors do not fit together.

    Example:
        >>> jagged_from_list([facula.ones(2), facula.ones(1)])[1]
        tensor([0, 2, 3])
    """
    if not len(tensors):
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    first = tensors[0]
    for what, ask in (
        ("dtype", lambda t: t.dtype),
        ("device", lambda t: t.device),
        ("dim", lambda t: t.dim()),
    ):
        if any(ask(t) != ask(first) for t in tensors):
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must have the same {what}"
            )
    if first.dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    ragged = _ragged_dim([t.shape for t in tensors])
    values = facula.cat(list(tensors), ragged).to(device=device, dtype=dtype)
    lengths = [t.shape[ragged] for t in tensors]
    if offsets is None:
        ends = [0]
        for length in lengths:
            ends.append(ends[-1] + length)
        offsets = facula.tensor(ends, dtype=facula.int64, device=values.device)
        Raggedness(min(lengths), max(lengths)).attach(offsets)
    elif [b - a for a, b in zip(*_pairs(offsets.tolist()), strict=True)] != lengths:
        raise RuntimeError(
            f"jagged_from_list(): offsets must tell the lengths {lengths}; got {offsets.tolist()}"
        )
    spec = JaggedSpec(offsets, None, ragged + 1)
    return nested_of(values, spec, NestedTensor), offsets


def _pairs(numbers):
    return numbers[:-1], numbers[1:]


def _ragged_dim(shapes):
    differ = [d for d in range(len(shapes[0])) if any(s[d] != shapes[0][d] for s in shapes)]
    if len(differ) > 1:
        raise RuntimeError(
            "When constructing a nested tensor of layout jagged, the tensors' sizes may differ in "
            f"one dimension only; got {[tuple(s) for s in shapes]}"
        )
    return differ[0] if differ else 0


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """The part of each row of a tensor as a jagged tensor that shares its memory.

    Args:
        tensor (Tensor): [batch, size, ...].
        starts, lengths (Tensor or int): [batch], of ints: where each part begins, its length.

    Returns:
        (NestedTensor, Tensor, Tensor or None): the tensor, its offsets and lengths.

    Example:
        >>> jagged_from_tensor_and_lengths(facula.ones(2, 3), 0, facula.tensor([1, 3]))[2]
        tensor([1, 3])
    """
    batch, size = tensor.shape[:2]
    device = tensor.device
    starts = facula.as_tensor(starts, device=device).expand(batch)
    lengths = facula.as_tensor(lengths, device=device).expand(batch).clone()
    offsets = facula.arange(batch, device=device) * size + starts
    end = offsets[-1:] + lengths[-1:] if batch else facula.zeros(1, dtype=facula.int64)
    offsets = facula.cat([offsets, end])
    starts, given = [int(n) for n in starts.tolist()], [int(n) for n in lengths.tolist()]
    if any(a < 0 or n < 0 or a + n > size for a, n in zip(starts, given, strict=True)):
        raise RuntimeError(
            f"narrow(): start and length must lie in the {size} elements of dimension 1; got "
            f"start {starts} and length {given}"
        )
    Raggedness(min(given, default=0), max(given, default=0)).attach(lengths)
    values = tensor.reshape(batch * size, *tensor.shape[2:])
    made = nested_of(values, JaggedSpec(offsets, lengths), NestedTensor)
    return made, offsets, lengths


def nested_view_from_values_offsets(
    values, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None
):
    """A jagged tensor that shares the values' memory.

    Args:
        values (Tensor): the rows of all sequences.
        offsets (Tensor): of ints, [batch + 1].
        ragged_idx (int): the ragged dimension of the result.
        min_seqlen, max_seqlen (int): the least and the greatest length where known.

    Returns:
        NestedTensor

    Example:
        >>> nested_view_from_values_offsets(facula.ones(3), facula.tensor([0, 1, 3])).dim()
        2
    """
    return nested_view_from_values_offsets_lengths(
        values, offsets, None, ragged_idx, min_seqlen, max_seqlen
    )


def nested_view_from_values_offsets_lengths(
    values, offsets, lengths, ragged_idx=1, min_seqlen=None, max_seqlen=None
):
    """A jagged tensor that shares the values' memory and leaves some rows out.

    Args:
        values (Tensor): the rows of all sequences.
        offsets (Tensor): of ints, [batch + 1].
        lengths (Tensor): of ints, [batch]; None where each sequence ends where the next begins.
        ragged_idx (int): the ragged dimension of the result.
        min_seqlen, max_seqlen (int): the least and the greatest length where known.

    Returns:
        NestedTensor

    Raises:
        RuntimeError: the sequences do not lie in the values.

    Example:
        >>> ends, lengths = facula.tensor([0, 2, 4]), facula.tensor([1, 2])
        >>> nested_view_from_values_offsets_lengths(facula.ones(4), ends, lengths).numel()
        3
    """
    spec = JaggedSpec(offsets, lengths, ragged_idx)
    known = spec.raggedness
    known.min_seqlen = known.min_seqlen if min_seqlen is None else int(min_seqlen)
    known.max_seqlen = known.max_seqlen if max_seqlen is None else int(max_seqlen)
    if not values.is_meta and not offsets.is_meta:
        _check_parts(values, spec)
    return nested_of(values, spec, NestedTensor)
