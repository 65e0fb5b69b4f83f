"""The functions of facula.nested: nested tensors from other things, and back."""

from __future__ import annotations

import facula

from .base import Nested
from .nested_tensor import (
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    nested_view_from_values_offsets_lengths,
)
from .strided import strided_of

# Functions here are called with nested tensors, which they must not be sent back for.
_off = facula._C.DisableTorchFunctionSubclass


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A nested tensor of copies of tensors: a leaf, cut off from their history.

    Args:
        tensor_list (list): of tensors, or of lists of numbers, of one number of dimensions.
        dtype (dtype), device (device): None for those of the first tensor.
        layout (layout): `facula.strided` (None) or `facula.jagged`; jagged tensors may differ in
            one dimension only.
        requires_grad (bool): whether the result collects gradients.
        pin_memory (bool): whether it lies in pinned memory.

    Returns:
        Tensor: with a dimension of the batch in front.

    Raises:
        TypeError: `tensor_list` is no list.
        RuntimeError: the tensors do not fit together, or the layout is another one.

    Example:
        >>> x = nested_tensor([facula.ones(2, 3), facula.ones(4, 3)], layout=facula.jagged)
        >>> x.dim(), x.size(0), x.size(2)
        (3, 2, 3)
    """
    _check_layout(layout, "nested tensors")
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(
            "nested_tensor(): expected a list of tensors or of lists of numbers; got "
            f"{type(tensor_list).__name__}"
        )
    tensors = [_copied(item, dtype, device) for item in tensor_list]
    made = _joined(tensors, layout, dtype, device)
    values = made._values.pin_memory() if pin_memory else made._values
    if requires_grad and not (values.is_floating_point() or values.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return type(made)(values, made._spec, requires_grad)


def _check_layout(layout, what):
    if layout not in (None, facula.strided, facula.jagged):
        raise RuntimeError(f"Specified layout is unsupported for {what}: {layout}")


def _copied(item, dtype, device):
    if isinstance(item, facula.Tensor):
        return item.detach()
    return facula.tensor(item, dtype=dtype, device=device)


def _joined(tensors, layout, dtype, device):
    """A nested tensor of tensors, with their history."""
    if layout == facula.jagged:
        return jagged_from_list(tensors, None, dtype, device)[0]
    for index, tensor in enumerate(tensors):
        if tensor.dim() != tensors[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{tensor.dim()} for Tensor at index {index} and dimension {tensors[0].dim()} for "
                "Tensor at index 0."
            )
    if tensors:
        dtype = dtype or tensors[0].dtype
        device = device or tensors[0].device
    like = facula.empty(0, dtype=dtype, device=device)
    return strided_of([t.to(device=device, dtype=dtype) for t in tensors], like)


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of tensors through which gradients go on to them.

    Args:
        ts (Tensor or list of Tensor): a nested tensor, a tensor whose first dimension is the batch,
            or the tensors.
        dtype (dtype), device (device): None for those that there are.
        layout (layout): `facula.strided` (None) or `facula.jagged`.

    Returns:
        Tensor: `ts` itself where it is what is asked for.

    Raises:
        TypeError: `ts` is neither a tensor nor a list of tensors.
        RuntimeError: the tensors do not fit together, or the layout is another one.

    Example:
        >>> x = facula.ones(2, requires_grad=True)
        >>> (as_nested_tensor([x, x], layout=facula.jagged) * 3).sum().backward()
        >>> x.grad
        tensor([6., 6.])
    """
    is_list = isinstance(ts, (list, tuple)) and all(isinstance(t, facula.Tensor) for t in ts)
    if not is_list and not isinstance(ts, facula.Tensor):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            f"tensors; got {type(ts).__name__}"
        )
    if isinstance(ts, facula.Tensor) and not isinstance(ts, Nested) and ts.dim() <= 1:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, Nested) and layout in (None, ts.layout):
        return ts.to(device=device, dtype=dtype)
    _check_layout(layout, "nested tensors")
    if layout == facula.jagged and not is_list and not isinstance(ts, Nested):
        return _jagged_of_rows(ts.to(device=device, dtype=dtype))
    tensors = list(ts) if is_list else list(ts.unbind())
    return _joined(tensors, layout, dtype, device)


def _jagged_of_rows(tensor):
    batch, length = tensor.shape[:2]
    offsets = facula.arange(batch + 1, device=tensor.device) * length
    values = tensor.reshape(batch * length, *tensor.shape[2:])
    return nested_view_from_values_offsets_lengths(values, offsets, None, 1, length, length)


def nested_tensor_from_jagged(
    values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None
):
    """A jagged nested tensor that shares the memory of values; gradients go on to them.

    Args:
        values (Tensor): the rows of all sequences.
        offsets (Tensor): of ints, [batch + 1]: where each sequence begins, and the end.
        lengths (Tensor): of ints, [batch]; with offsets, how much of each sequence counts.
        jagged_dim (int): the ragged dimension of the result; 1 where None.
        min_seqlen, max_seqlen (int): the least and the greatest length where known.

    Returns:
        NestedTensor

    Raises:
        RuntimeError: neither offsets nor lengths is given, or the sequences do not lie in the
            values.

    Example:
        >>> x = nested_tensor_from_jagged(facula.arange(3.0), lengths=facula.tensor([1, 2]))
        >>> x.unbind()
        (tensor([0.]), tensor([1., 2.]))
    """
    for name, given in (("values", values), ("offsets", offsets), ("lengths", lengths)):
        if given is not None and not isinstance(given, facula.Tensor):
            raise TypeError(
                f"nested_tensor_from_jagged(): {name} must be a Tensor; got {type(given).__name__}"
            )
    if values is None or isinstance(values, Nested):
        raise ValueError("nested_tensor_from_jagged(): values must be a plain tensor")
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets, lengths = facula.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    if offsets.dim() != 1 or offsets.shape[0] < 1:
        # AssertionError is PyTorch's class for it.
        raise AssertionError(f"offsets must be 1D, but got {offsets.dim()}D")
    if lengths is not None and lengths.shape != (offsets.shape[0] - 1,):
        raise RuntimeError(
            f"nested_tensor_from_jagged(): lengths must have {offsets.shape[0] - 1} elements; got "
            f"shape {tuple(lengths.shape)}"
        )
    dim = 1 if jagged_dim is None else int(jagged_dim)
    if dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {dim}.")
    if dim > values.dim():
        raise IndexError(
            f"nested_tensor_from_jagged(): jagged_dim must be at most {values.dim()}; got {dim}"
        )
    return nested_view_from_values_offsets_lengths(
        values, offsets, lengths, dim, min_seqlen, max_seqlen
    )


def narrow(tensor, dim, start, length, layout=None):
    """A part of each row of a tensor as a nested tensor.

    Args:
        tensor (Tensor): [batch, size, ...].
        dim (int): 1 for layout jagged.
        start, length (int or Tensor): [batch], of ints: where each part begins, its length; ints
            for layout strided.
        layout (layout): `facula.strided` (None) or `facula.jagged`.

    Returns:
        Tensor: jagged ones share the tensor's memory.

    Raises:
        RuntimeError: another layout or dimension, or a part is outside of the tensor.

    Example:
        >>> x = facula.arange(6).reshape(2, 3)
        >>> narrow(x, 1, 0, facula.tensor([1, 2]), layout=facula.jagged).unbind()
        (tensor([0]), tensor([3, 4]))
    """
    _check_layout(layout, "nested narrow")
    if not isinstance(start, (int, facula.Tensor)):
        raise RuntimeError(
            "narrow(): start must be an int or a Tensor of ints; got " + type(start).__name__
        )
    if not isinstance(length, (int, facula.Tensor)):
        raise RuntimeError(
            "narrow(): length must be an int or a Tensor of ints; got " + type(length).__name__
        )
    if layout == facula.jagged:
        if dim != 1:
            raise RuntimeError("jagged layout only supports dim=1")
        if isinstance(tensor, Nested):
            raise RuntimeError("narrow(): expected a plain tensor; got a nested one")
        return jagged_from_tensor_and_lengths(tensor, start, length)[0]
    if not isinstance(start, int) or not isinstance(length, int):
        raise RuntimeError("start and length must be integers for the strided layout NT impl")
    return as_nested_tensor(tensor).narrow(dim, start, length)


def masked_select(tensor, mask):
    """The elements of each row that a mask selects, as a jagged nested tensor.

    Args:
        tensor (Tensor): of any shape of at least one dimension.
        mask (Tensor): of bool; of a shape that is broadcast with the tensor's.

    Returns:
        NestedTensor: [rows, ragged], with a row for each slice along the last dimension.

    Raises:
        RuntimeError: the tensor is nested, or the mask is not of bool.

    Example:
        >>> x, mask = facula.arange(4).reshape(2, 2), facula.tensor([[True, False], [True, True]])
        >>> masked_select(x, mask).unbind()
        (tensor([0]), tensor([2, 3]))
    """
    if tensor.layout != facula.strided or tensor.is_nested:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    if mask.layout != facula.strided or mask.is_nested:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided mask, given: {mask.layout}"
        )
    if mask.dtype != facula.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    values = tensor.masked_select(mask)
    whole = facula.broadcast_tensors(tensor, mask)[1]
    if whole.dim() == 0:
        raise RuntimeError("masked_select(): the tensor must have a dimension; got a scalar")
    counts = whole.sum(-1).reshape(-1).cumsum(0)
    offsets = facula.nn.functional.pad(counts, (1, 0))
    return nested_view_from_values_offsets_lengths(values, offsets, None)


def to_padded_tensor(input, padding, output_size=None, out=None):
    """A plain tensor of the sequences of a nested one, with padding after the shorter ones.

    Args:
        input (Tensor): a nested tensor.
        padding (float): what fills the rest.
        output_size (list of int): the result's shape; None for the smallest.
        out (Tensor): where the result goes.

    Returns:
        Tensor

    Raises:
        RuntimeError: there are rows between the sequences, or the size is too small (strided).

    Example:
        >>> x = nested_tensor([[1], [2, 3]], layout=facula.jagged)
        >>> to_padded_tensor(x, 0)
        tensor([[1, 0],
                [2, 3]])
    """
    if not isinstance(input, Nested):
        raise RuntimeError(
            f"to_padded_tensor(): expected a nested tensor; got {type(input).__name__}"
        )
    result = input.to_padded_tensor(padding, output_size)
    return result if out is None else out.copy_(result)
