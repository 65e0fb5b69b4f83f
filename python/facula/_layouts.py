"""Copies, pickles and text of tensors whose layout a library registered."""

import facula
from facula import _C


def _kind(t):
    """The tensor's registered kind; None for strided tensors, and for facula's own quantized ones,
    which have a storage and strides."""
    kind = _C._layout_kind(t)
    return None if kind == "facula.quantized" else kind


def sparse_layouts():
    """The layouts of sparse tensors, whose text and pickles are PyTorch's."""
    return [getattr(facula, f"sparse_{name}") for name in ("coo", "csr", "csc", "bsr", "bsc")]


def rebuild(kind, size, dtype, device, parts, requires_grad):
    """A tensor of a registered kind from its parts; the library must be loaded.

    Raises:
        RuntimeError: no library has registered the kind.
        NotImplementedError: the kind cannot be made from parts.
    """
    made = _C._layout_from_parts(kind, tuple(size), dtype, facula.device(device), list(parts))
    return made.requires_grad_() if requires_grad else made


def reduction(t):
    """What a pickle says of the tensor: `rebuild` and its arguments; None for strided tensors."""
    kind = _kind(t)
    if kind is None:
        return None
    plain = t.detach()
    parts = _C._layout_parts(plain)
    return rebuild, (kind, tuple(t.shape), t.dtype, str(t.device), parts, t.requires_grad)


def copied(t, memo):
    """A copy with parts of its own; None for strided tensors."""
    kind = _kind(t)
    if kind is None:
        return None
    parts = [p if p is None else p.__deepcopy__(memo) for p in _C._layout_parts(t.detach())]
    return rebuild(kind, t.shape, t.dtype, t.device, parts, False)


def text(t, indent):
    """The tensor's values as its kind says them, or its parts; None for strided tensors."""
    if _kind(t) is None:
        return None
    said = _C._layout_text(t)
    if said:
        return said
    parts = [repr(p).replace("\n", "\n" + " " * indent) for p in _C._layout_parts(t)]
    return (",\n" + " " * indent).join(parts)
