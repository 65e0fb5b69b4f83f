"""How tensors and storages are sent: as a place in shared memory, with a geometry.

A message names the segment of memory, how to open it, and where in it the storage lies. A process
that has the segment already opens nothing. Storages are remembered by their place, so that two
views of one storage, sent apart, share it at the other end.
"""

from __future__ import annotations

import os
import threading
from multiprocessing.reduction import ForkingPickler
from weakref import WeakValueDictionary

import facula
from facula import _C

# (segment, offset) -> the storage there. A storage keeps its object as long as it lives.
shared_cache = WeakValueDictionary()
_lock = threading.RLock()


def _opened_by_path(pid):
    """Whether other processes can open this one's descriptors by a path."""
    return os.path.isdir(f"/proc/{pid}/fd")


def _place_of(storage):
    """(segment, name, path, descriptor, bytes of the segment, offset) of a shared storage."""
    segment, name, descriptor, size, offset = _C._shared_block(storage)
    pid = os.getpid()
    path, copied = "", None
    if not name and _opened_by_path(pid):
        path = f"/proc/{pid}/fd/{descriptor}"
    elif not name:
        from multiprocessing.reduction import DupFd

        copied = DupFd(descriptor)
    return segment, name, path, copied, size, offset


def rebuild_storage_empty(cls):
    """A storage without bytes."""
    return cls(0)


def rebuild_storage(segment, name, path, copied, segment_bytes, offset, nbytes):
    """The storage at a place of shared memory, from a message."""
    descriptor = copied.detach() if copied is not None else -1
    try:
        with _lock:
            storage = _C._map_shared_storage(
                segment, name, path, descriptor, segment_bytes, offset, nbytes, True
            )
            return shared_cache.setdefault((segment, offset), storage)
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def reduce_storage(storage):
    """What a message says of an untyped storage, which is moved to shared memory."""
    if storage.device.type == "meta":
        raise RuntimeError("a storage on the meta device cannot be sent; send its tensor")
    if storage.device.type != "cpu":
        return storage.__reduce__()
    if storage.nbytes() == 0:
        return rebuild_storage_empty, (type(storage),)
    if storage.filename is not None:
        return rebuild_storage_file, (storage.filename, storage.nbytes())
    storage.share_memory_()
    place = _place_of(storage)
    with _lock:
        shared_cache[place[0], place[5]] = storage
    _C._begin_shared_message(storage)
    return rebuild_storage, (*place, storage.nbytes())


def rebuild_storage_file(filename, nbytes):
    """A storage over the first bytes of a file that processes share."""
    key = (filename, nbytes)
    with _lock:
        if key not in shared_cache:
            shared_cache[key] = storage = facula.UntypedStorage.from_file(filename, True, nbytes)
            return storage
        return shared_cache[key]


def rebuild_typed_storage(storage, dtype):
    """An untyped storage seen as elements of a dtype."""
    return facula.TypedStorage(wrap_storage=storage, dtype=dtype)


def reduce_typed_storage(storage):
    """What a message says of a typed storage."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def rebuild_tensor(cls, storage, metadata):
    """A tensor over a storage, from a message."""
    dtype, offset, size, stride, requires_grad, conjugate, negative = metadata
    tensor = _C._tensor_from_storage(storage, dtype, offset, size, stride, False)
    if conjugate:
        tensor = tensor.conj()
    if negative:
        tensor = facula._neg_view(tensor)
    if cls is facula.nn.Parameter:
        return facula.nn.Parameter(tensor, requires_grad=requires_grad)
    tensor.requires_grad = requires_grad
    return tensor


def rebuild_meta_tensor(cls, dtype, size, stride, requires_grad):
    """A tensor on the meta device."""
    tensor = facula.empty_strided(size, stride, dtype=dtype, device="meta")
    if cls is facula.nn.Parameter:
        return facula.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def reduce_tensor(tensor):
    """What a message says of a tensor, whose storage is moved to shared memory.

    Raises:
        RuntimeError: the tensor requires grad and is not a leaf.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries: send tensor.detach() instead"
        )
    if tensor.is_meta:
        kept = (tensor.dtype, tuple(tensor.size()), tensor.stride(), tensor.requires_grad)
        return rebuild_meta_tensor, (type(tensor), *kept)
    if tensor.layout is not facula.strided or tensor.device.type != "cpu" or tensor.is_nested:
        return tensor.__reduce_ex__(ForkingPickler.DEFAULT_PROTOCOL)
    metadata = (
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.size()),
        tensor.stride(),
        tensor.requires_grad,
        tensor.is_conj(),
        tensor.is_neg(),
    )
    return rebuild_tensor, (type(tensor), tensor.untyped_storage(), metadata)


def init_reductions():
    """Have the standard library's multiprocessing send tensors this way."""
    ForkingPickler.register(facula.UntypedStorage, reduce_storage)
    ForkingPickler.register(facula.TypedStorage, reduce_typed_storage)
    ForkingPickler.register(facula.Tensor, reduce_tensor)
    ForkingPickler.register(facula.nn.Parameter, reduce_tensor)
