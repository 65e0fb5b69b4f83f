"""Finds results that show memory which nobody set: a call runs twice, over memory that was filled
with another byte each time, and must give the same.

Where the build has the fenced allocator and it is on (FACULA_FENCED_ALLOCATOR=1), it fills all new
memory; elsewhere the blocks that the allocator will hand out next are filled beforehand.
"""

import hashlib
import re

import facula

FILLS = (0x7F, 0xFF)
# Operators whose results are memory as it was, by their meaning.
LEAVES_UNSET = re.compile(
    r"(^|[._])(new_)?empty|(^|[._])resize|(^|[._])set_|(^|\.)new$|Storage|(^|[._])Tensor$|"
    r"^facula\.\w*Tensor$|share_memory|data_ptr"
)
_set_fence_fill = getattr(facula._C, "_set_fence_fill", lambda byte: False)
_SIZES = [64 * k for k in range(1, 17)] + [1280, 1536, 1792, 2048, 3072, 4096, 8192]


def fill_free_memory(byte):
    """Has new memory hold a byte everywhere."""
    if _set_fence_fill(byte):
        return
    blocks = [facula.full((n,), byte, dtype=facula.uint8) for n in _SIZES for _ in range(4)]
    del blocks


def tensors_in(value):
    """All tensors of nested lists, tuples and dicts."""
    if isinstance(value, facula.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return []


def fingerprint(value):
    """Shapes, dtypes and bytes of all tensors, gradients included; what cannot be read is named."""
    found = []
    for t in tensors_in(value):
        found.append(_readable(t))
        if (grad := _gradient_of(t)) is not None:
            found.append(_readable(grad))
    return found


def _gradient_of(t):
    try:
        return t.grad if t.is_leaf and t.requires_grad else None
    except RuntimeError:  # a view whose base was changed where that is forbidden
        return None


def _readable(t):
    try:
        return _of_tensor(t)
    except Exception as error:  # wrappers of transforms, storages without memory
        return type(error).__name__


def _of_tensor(t):
    head = (str(t.dtype), tuple(t.shape), str(t.device))
    if t.device.type != "cpu" or t.numel() > 1 << 20:
        return head
    with facula.no_grad():
        # A copy: a view of one element may have any stride, and view(dtype) minds it.
        flat = (
            t.detach()
            .resolve_conj()
            .resolve_neg()
            .reshape(-1)
            .clone(memory_format=facula.contiguous_format)
        )
        data = flat.view(facula.uint8).numpy().tobytes() if flat.numel() else b""
    return (*head, hashlib.sha1(data).hexdigest())


def runs_differ(run):
    """Whether run(), a function that makes its arguments itself, depends on what memory held; the
    difference as text, or None."""
    seen = []
    for byte in FILLS:
        facula.manual_seed(0)
        fill_free_memory(byte)
        try:
            seen.append(fingerprint(run()))
        except Exception as error:
            seen.append(f"{type(error).__name__}")
    if seen[0] == seen[1]:
        return None
    return f"results differ with what memory held before: {seen[0]} and {seen[1]}"[:300]
