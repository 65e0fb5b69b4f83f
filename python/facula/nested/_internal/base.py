"""What both layouts of nested tensors share: the way of a call, and gradients.

A nested tensor is a wrapper around a plain tensor of values and a *spec*, which says where in them
the sequences lie. A call comes to `__torch_function__`, looks up the rule of its name in the table
of the layout (`rules.py`), and the rule works on the values, as plain operators that autograd sees.
Two small nodes of the graph, from nested tensor to values and back, are all that is added.
"""

from __future__ import annotations

import facula
from facula import _C

_header = _C.DisableTorchFunctionSubclass


class Nested(facula.Tensor):
    """The base of nested tensors of both layouts.

    Args:
        values (Tensor): the values; detached.
        spec: where the sequences lie in them.
        requires_grad (bool): whether the tensor is a leaf that collects gradients.
    """

    @staticmethod
    def __new__(cls, values, spec, requires_grad=False):
        # The header has the geometry of the values, so gradients are checked against it.
        return facula.Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            device=values.device,
            dtype=values.dtype,
            requires_grad=requires_grad,
        )

    def __init__(self, values, spec, requires_grad=False):
        self._values, self._spec = values.detach(), spec

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls._rules().run(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with facula.no_grad(), _header():
            return cls._rules().run_below_autograd(func, args, kwargs or {})

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        with _header():
            if not self.is_leaf:
                raise RuntimeError(
                    "deepcopy(): only leaves of the graph can be copied; got a tensor that an "
                    "operation made (detach() gives a leaf)"
                )
            result = type(self)(self._values.clone(), self._spec, self.requires_grad)
            if self.grad is not None:
                result.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = result
        return result

    def __setstate__(self, state):
        """Nothing: what rebuilds a pickle gives the constructor all there is."""

    def values(self):
        """The values, as one plain tensor with the history of the nested one.

        Returns:
            Tensor: it shares the nested tensor's memory.

        Example:
            >>> facula.nested.nested_tensor([[1], [2, 3]], layout=facula.jagged).values()
            tensor([1, 2, 3])
        """
        with _header():
            return values_of(self) if self.requires_grad else self._values.detach()

    def to_padded_tensor(self, padding, output_size=None):
        """A plain tensor of the sequences, with padding after the shorter ones.

        Args:
            padding (float): what fills the rest.
            output_size (list of int): the result's shape; None for the smallest.

        Returns:
            Tensor

        Example:
            >>> facula.nested.nested_tensor([[1], [2, 3]]).to_padded_tensor(0)
            tensor([[1, 0],
                    [2, 3]])
        """
        with _header():
            return (
                self._rules().table["to_padded_tensor"].function(None, self, padding, output_size)
            )

    @property
    def is_nested(self):
        """True."""
        return True

    @property
    def layout(self):
        """The layout: `facula.jagged` or `facula.strided`."""
        return self._spec.layout


def history_of(nested):
    """The node that made a nested tensor's values, for printing.

    Args:
        nested (Nested): any; `__torch_function__` must be off.

    Returns:
        Node or None
    """
    node = nested.grad_fn
    before = node.next_functions[0][0] if type(node).__name__ == "_FromValuesBackward" else None
    return before or node


class _ToValues(facula.autograd.Function):
    """The values of a nested tensor; the gradient has the same spec."""

    @staticmethod
    def forward(ctx, nested):
        ctx.set_materialize_grads(False)
        ctx.kind, ctx.spec = type(nested), nested._spec
        return nested._values.detach()

    @staticmethod
    def backward(ctx, grad):
        return None if grad is None else nested_of(grad, ctx.spec, ctx.kind)


class _FromValues(facula.autograd.Function):
    """A nested tensor of values; the gradient is a plain tensor."""

    @staticmethod
    def forward(ctx, values, spec, kind):
        ctx.set_materialize_grads(False)
        return kind(values, spec)

    @staticmethod
    def backward(ctx, grad):
        return None if grad is None else _plain(grad), None, None


def _plain(grad):
    if isinstance(grad, Nested):
        with _header():
            return values_of(grad)
    return grad


class _Written(facula.autograd.Function):
    """A nested tensor after its values were written: its history is that of the new values."""

    @staticmethod
    def forward(ctx, nested, values):
        ctx.mark_dirty(nested)
        nested._values.copy_(values)
        return nested

    @staticmethod
    def backward(ctx, grad):
        return None, _plain(grad)


def values_of(nested):
    """The values of a nested tensor, with its history where gradients are recorded.

    Args:
        nested (Nested): any; `__torch_function__` must be off.

    Returns:
        Tensor
    """
    if facula.is_grad_enabled() and nested.requires_grad:
        return _ToValues.apply(nested)
    return nested._values


def nested_of(values, spec, kind):
    """A nested tensor of values, with their history.

    Args:
        values (Tensor): the values.
        spec: where the sequences lie in them.
        kind (type): the class of the result.

    Returns:
        Nested
    """
    with _header():
        if values.requires_grad and facula.is_grad_enabled():
            return _FromValues.apply(values, spec, kind)
        return kind(values, spec)


def write(nested, change):
    """Change the values of a nested tensor in place.

    Args:
        nested (Nested): what is written.
        change (callable): of the values; writes them in place.

    Returns:
        Nested: the same object.
    """
    if not facula.is_grad_enabled():
        change(nested._values)
        return nested
    if not nested.requires_grad:
        values = nested._values.detach()  # shares memory and version with those of the tensor
        change(values)
        if not values.requires_grad:
            return nested
        return _Written.apply(nested, values)
    if nested.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    values = _ToValues.apply(nested).clone()
    change(values)
    return _Written.apply(nested, values)
