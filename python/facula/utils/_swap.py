"""Exchange of two tensors."""

from __future__ import annotations

import weakref

import facula


def swap_tensors(t1, t2):
    """Exchange two tensors: each name then stands for what the other stood for.

    Class, attributes, data, dtype, device, gradient and requires_grad change places; the Python
    objects, and with them whatever refers to them, stay.

    Args:
        t1, t2: Tensors without a history.

    Raises:
        RuntimeError: a tensor with weak references.
        NotImplementedError: a tensor that is the result of an operation.

    Example:
        >>> a, b = facula.ones(2), facula.zeros(3)
        >>> facula.utils.swap_tensors(a, b)
        >>> a.tolist(), b.tolist()
        ([0.0, 0.0, 0.0], [1.0, 1.0])
    """
    for tensor in (t1, t2):
        if weakref.getweakrefs(tensor):
            raise RuntimeError("swap_tensors(): a tensor must have no weak references; got some")
        if tensor.grad_fn is not None:
            raise NotImplementedError(
                "swap_tensors(): a tensor with a history cannot be swapped yet"
            )
    parts = [(t.data, t.grad, t.requires_grad) for t in (t1, t2)]
    for tensor in (t1, t2):
        tensor.grad = None
        tensor.requires_grad_(False)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    with facula.no_grad():
        for tensor, (data, grad, requires_grad) in ((t1, parts[1]), (t2, parts[0])):
            tensor.data = data
            tensor.requires_grad_(requires_grad)
            tensor.grad = grad
