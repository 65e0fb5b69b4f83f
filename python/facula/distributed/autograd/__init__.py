"""Backward passes through calls of other workers.

Within a context each message between workers that carries tensors with a derivative is noted on
both sides: as sent, with the tensors and their graph, and as received, with leaves of a new graph.
A backward pass computes the gradients of all leaves of one worker; those of received tensors go
back to where they were sent, which goes on from there. Gradients add up in the context, not in
`.grad`.
"""

from __future__ import annotations

import contextlib
import struct
import threading

import facula

__all__ = ["backward", "context", "get_gradients", "is_available"]

_NOTE = struct.Struct("<qq")  # the context, and the message; -1 for none
_BITS = 48  # of a worker's own numbers, in numbers that all workers know


class _Context:
    """What one worker has of a context."""

    def __init__(self, id):
        self.id, self.lock = id, threading.Lock()
        self.sent = {}  # tensors by message
        self.received = {}  # (worker, tensors) by message
        self.sources = {}  # (message, place) by received tensor
        self.grads, self.workers = {}, set()


class _Thread(threading.local):
    context = None


_contexts, _lock, _of_thread = {}, threading.Lock(), _Thread()
_last = {"context": 0, "message": 0}


def is_available():
    """Whether other processes can take part: True."""
    return True


def _new_number(kind):
    from facula.distributed.rpc import get_worker_info

    worker = get_worker_info().id
    with _lock:
        _last[kind] += 1
        return (worker << _BITS) + _last[kind]


def _find(id, make=False):
    with _lock:
        found = _contexts.get(id)
        if found is None and make:
            found = _contexts[id] = _Context(id)
    if found is None:
        raise RuntimeError(f"autograd: expected a context that is open; there is none of id {id}")
    return found


def _context_of_thread():
    return _of_thread.context


@contextlib.contextmanager
def _in_thread(id):
    before, _of_thread.context = _of_thread.context, id
    try:
        yield
    finally:
        _of_thread.context = before


class context:
    """A scope in which calls of other workers are noted for a backward pass; gives its id.

    Example:
        >>> import facula.distributed.autograd as dist_autograd
        >>> with dist_autograd.context() as context_id:  # doctest: +SKIP
        ...     loss = rpc.rpc_sync("worker1", facula.add, args=(t1, t2)).sum()
        ...     dist_autograd.backward(context_id, [loss])
        ...     dist_autograd.get_gradients(context_id)[t1]
    """

    def __enter__(self):
        if _of_thread.context is not None:
            raise RuntimeError("autograd.context(): expected no context inside of another")
        self._id = _of_thread.context = _find(_new_number("context"), make=True).id
        return self._id

    def __exit__(self, type, value, traceback):
        _of_thread.context = None
        _release(self._id)


def _release(id):
    """Forget a context, here and where messages of it went."""
    from facula.distributed.rpc import api

    with _lock:
        found = _contexts.pop(id, None)
    if found is not None and api._is_current_rpc_agent_set():
        for worker in found.workers:
            api._tell(worker, ("release_context", id))


def _forget_all():
    with _lock:
        _contexts.clear()


# What messages carry ---------------------------------------------------------------------------


def _note_sent(id, worker, tensors):
    """Bytes before a message: its context and number."""
    if id is None or id not in _contexts:
        return _NOTE.pack(-1, -1)
    number, found = _new_number("message"), _find(id)
    with found.lock:
        found.workers.add(worker)
        if any(t.requires_grad for t in tensors):
            found.sent[number] = list(tensors)
    return _NOTE.pack(id, number)


def _read_note(body):
    id, number = _NOTE.unpack_from(body)
    return (None, None) if id == -1 else (id, number)


def _note_received(id, number, worker, tensors):
    found = _find(id, make=True)
    with found.lock:
        if any(t.requires_grad for t in tensors):
            found.received[number] = worker, list(tensors)
            for place, tensor in enumerate(tensors):
                found.sources[tensor] = number, place


# The backward pass -----------------------------------------------------------------------------


def _leaves(roots):
    """The tensors whose gradients a graph gives."""
    found, seen = [], set()
    stack = [facula.autograd.graph.get_gradient_edge(root).node for root in roots]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.append(variable)
        stack += [n for n, _ in node.next_functions if n is not None]
    return found


def _compute(found, roots, grads, retain_graph):
    """Gradients of this worker's leaves; those of received tensors are returned by message."""
    leaves = _leaves(roots)
    values = facula.autograd.grad(
        roots, leaves, grads, retain_graph=retain_graph, allow_unused=True
    )
    back = {}
    with found.lock:
        for leaf, grad in zip(leaves, values, strict=True):
            if grad is None:
                continue
            if leaf in found.sources:
                number, place = found.sources[leaf]
                back.setdefault(number, {})[place] = grad
            else:
                before = found.grads.get(leaf)
                found.grads[leaf] = grad if before is None else before + grad
    return back


def _send_back(found, back):
    from facula.distributed.rpc import api

    with _in_thread(None):
        waiting = [
            api._ask(found.received[number][0], ("backward", found.id, number, grads))
            for number, grads in back.items()
        ]
        for future in waiting:
            future.wait()


def _continue_backward(id, number, grads):
    """Go on with the backward pass at a message that this worker has sent."""
    found = _find(id)
    with found.lock:
        tensors = found.sent.get(number)
    if tensors is None:
        raise RuntimeError(f"autograd: expected a message of context {id}; got {number}")
    # Several messages may come back to parts of one graph: it is freed with the context.
    roots = [tensors[place] for place in grads]
    _send_back(found, _compute(found, roots, list(grads.values()), True))


def backward(context_id, roots, retain_graph=False):
    """Compute gradients of all that was used in a context, on all workers.

    Args:
        context_id (int): of `context`.
        roots (list of Tensor): scalars of this worker.
        retain_graph (bool): whether the local graph can be used again.

    Raises:
        RuntimeError: there is no such context, or roots have no derivative or several elements.
    """
    found = _find(context_id)
    if not roots:
        raise RuntimeError("autograd.backward(): expected at least one root; got none")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError(
                "autograd.backward(): expected roots that require grad; got one that does not"
            )
        if root.numel() != 1:
            raise RuntimeError(
                "autograd.backward(): expected roots of one element; got the shape "
                f"{list(root.shape)}"
            )
    # Sent tensors may hang on the same graph: it is freed with the context.
    keep = retain_graph or bool(found.sent)
    back = _compute(found, list(roots), [facula.ones_like(r) for r in roots], keep)
    _send_back(found, back)


def get_gradients(context_id):
    """The gradients that a context has of this worker's tensors.

    Args:
        context_id (int): of `context`.

    Returns:
        dict: gradients by tensor
    """
    found = _find(context_id)
    with found.lock:
        return dict(found.grads)
