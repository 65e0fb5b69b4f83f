"""FakeTensorMode, in which operators compute shapes alone, and what asks for its tensors."""

from __future__ import annotations

import facula
from facula import _C


class _FakeTensorMeta(type(facula.Tensor)):
    def __instancecheck__(cls, instance):
        return isinstance(instance, facula.Tensor) and _C._is_fake(instance)


class FakeTensor(facula.Tensor, metaclass=_FakeTensorMeta):
    """What `isinstance` tells fake tensors by; `FakeTensorMode.from_tensor` makes them."""

    def __new__(cls, *args, **kwargs):
        raise TypeError("FakeTensor: fake tensors are made by FakeTensorMode.from_tensor")


def is_fake(x):
    """Whether a value is a fake tensor.

    Example:
        >>> is_fake(facula.ones(2))
        False
    """
    return isinstance(x, FakeTensor)


class FakeTensorMode:
    """Context manager: operators run their shape rules only, and factories allocate nothing.

    Fake tensors are used while a mode is entered; outside, an operator on one raises RuntimeError.

    Args:
        allow_non_fake_inputs (bool): whether operators take other tensors, of which they read
            the shapes; else such a call raises AssertionError.

    Example:
        >>> with FakeTensorMode() as mode:
        ...     x = mode.from_tensor(facula.ones(2, 3)) @ facula.empty(3, 1000)
        >>> x.shape, is_fake(x)
        (facula.Size([2, 1000]), True)
    """

    def __init__(self, *, allow_non_fake_inputs=False):
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self._entered = []

    def __enter__(self):
        mode = _C._FakeMode(self.allow_non_fake_inputs)
        mode.__enter__()
        self._entered.append(mode)
        return self

    def __exit__(self, *error):
        return self._entered.pop().__exit__(*error)

    def from_tensor(self, tensor):
        """The fake tensor with the shape, dtype and device of a tensor; a fake one as it is."""
        return tensor if is_fake(tensor) else _C._make_fake(tensor)
