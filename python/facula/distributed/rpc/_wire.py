"""Messages as bytes: a head, a pickle, and the memory of tensors beside it, which is not copied."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from typing import NamedTuple

import facula

_HEAD = struct.Struct("<BqQI")
_LENGTH = struct.Struct("<Q")
_MOST = 1 << 40  # a length above this is no message of ours


class Message(NamedTuple):
    """What passes between two workers."""

    kind: int
    number: int  # of the call that it belongs to
    body: bytes
    buffers: list


class _Pickler(pickle.Pickler):
    """Takes tensors out of a pickle."""

    def __init__(self, file, on_rref):
        super().__init__(file, protocol=5)
        self.tensors, self.on_rref = [], on_rref

    def reducer_override(self, value):
        if type(value) in (facula.Tensor, facula.nn.Parameter):
            return self._tensor(value)
        return NotImplemented

    def persistent_id(self, value):
        return self.on_rref(value)

    def _tensor(self, tensor):
        if tensor.layout is not facula.strided or tensor.device.type != "cpu":
            raise RuntimeError(
                "rpc: expected dense tensors on the CPU among the arguments and results; got "
                f"{tensor.layout} on {tensor.device}"
            )
        self.tensors.append(tensor)
        return _take_tensor, (len(self.tensors) - 1,)


def _memory_of(tensor):
    """The bytes of a tensor in order, without a copy if they lie so."""
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    begin = dense.storage_offset() * dense.element_size()
    size = dense.numel() * dense.element_size()
    return memoryview(dense.untyped_storage())[begin : begin + size] if size else memoryview(b"")


def _take_tensor(place):
    raise RuntimeError("rpc: expected to be called while a message is read")


def _tensor_from(buffer, shape, dtype, requires_grad, is_parameter):
    if len(buffer):
        tensor = facula.frombuffer(buffer, dtype=dtype).view(shape)
    else:
        tensor = facula.empty(shape, dtype=dtype)
    if is_parameter:
        return facula.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, tensors, on_rref):
        super().__init__(file)
        self.tensors, self.on_rref = tensors, on_rref

    def find_class(self, module, name):
        if module == __name__ and name == "_take_tensor":
            return self._take
        return super().find_class(module, name)

    def persistent_load(self, key):
        return self.on_rref(key)

    def _take(self, place):
        return self.tensors[place]


def pack(value, on_rref):
    """A value as bytes.

    Args:
        value: anything that can be pickled, with dense tensors.
        on_rref (callable): a key for an RRef, None for anything else.

    Returns:
        tuple: the pickle, memory of tensors, the tensors
    """
    file = io.BytesIO()
    pickler = _Pickler(file, on_rref)
    pickler.dump(value)
    tensors = pickler.tensors
    metas = [
        (tuple(t.shape), t.dtype, t.requires_grad, isinstance(t, facula.nn.Parameter))
        for t in tensors
    ]
    body = pickle.dumps((metas, file.getvalue()), protocol=5)
    return body, [_memory_of(t) for t in tensors], tensors


def unpack(body, buffers, on_rref, on_tensors=None):
    """The value that `pack` has made bytes of.

    Args:
        body (bytes): the pickle.
        buffers (list): writable memory of the tensors, which they keep.
        on_rref (callable): an RRef for a key.
        on_tensors (callable): given the list of tensors before the value is made.
    """
    metas, inner = pickle.loads(body)
    tensors = [_tensor_from(b, *meta) for meta, b in zip(metas, buffers, strict=True)]
    if on_tensors is not None:
        on_tensors(tensors)
    return _Unpickler(io.BytesIO(inner), tensors, on_rref).load()


def send(socket, message):
    """Write a message to a socket; the caller holds its lock."""
    buffers = [memoryview(b).cast("B") for b in message.buffers]
    head = _HEAD.pack(message.kind, message.number, len(message.body), len(buffers))
    lengths = b"".join(_LENGTH.pack(len(b)) for b in buffers)
    socket.sendall(head + lengths + message.body)
    for buffer in buffers:
        socket.sendall(buffer)


def _read(socket, size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = socket.recv_into(view)
        if count == 0:
            raise EOFError("the other end has closed the connection")
        view = view[count:]
    return data


def receive(socket):
    """Read a message from a socket.

    Raises:
        EOFError: the connection has ended.
        OSError: it has broken.
    """
    kind, number, size, count = _HEAD.unpack(_read(socket, _HEAD.size))
    if size > _MOST or count > sys.maxsize // 8:
        raise OSError("rpc: expected a message; got other bytes")
    lengths = [n for (n,) in _LENGTH.iter_unpack(_read(socket, _LENGTH.size * count))]
    body = bytes(_read(socket, size))
    return Message(kind, number, body, [_read(socket, n) for n in lengths])
