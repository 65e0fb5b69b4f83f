"""Arithmetic as modules, so that its results can be observed and quantized."""

from __future__ import annotations

import facula
from facula.nn import Identity, Module
from facula.nn import functional as F

from .utils import ScaledModule

__all__ = ["FloatFunctional", "FXFloatFunctional", "QFunctional"]


class FloatFunctional(Module):
    """Arithmetic of floats whose results pass `activation_post_process`.

    Example:
        >>> FloatFunctional().add(facula.ones(2), facula.ones(2))
        tensor([2., 2.])
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        """Raises RuntimeError: the methods are what is called."""
        raise RuntimeError(
            f"{type(self).__name__}(): expected a call of one of its methods, such as add()"
        )

    def add(self, x, y):
        """x + y"""
        return self.activation_post_process(facula.add(x, y))

    def add_scalar(self, x, y):
        """x + y of a tensor and a number, which is not observed: the range follows from x's."""
        return facula.add(x, y)

    def mul(self, x, y):
        """x * y"""
        return self.activation_post_process(facula.mul(x, y))

    def mul_scalar(self, x, y):
        """x * y of a tensor and a number, which is not observed: the range follows from x's."""
        return facula.mul(x, y)

    def cat(self, x, dim=0):
        """The tensors joined along `dim`."""
        return self.activation_post_process(facula.cat(x, dim=dim))

    def add_relu(self, x, y):
        """What is positive of x + y."""
        return self.activation_post_process(F.relu(facula.add(x, y)))

    def matmul(self, x, y):
        """The product of matrices."""
        return self.activation_post_process(facula.matmul(x, y))


class FXFloatFunctional(Module):
    """Arithmetic of floats, without observing: for models that `fx` traces."""

    def forward(self, x):
        """Raises RuntimeError: the methods are what is called."""
        raise RuntimeError(
            f"{type(self).__name__}(): expected a call of one of its methods, such as add()"
        )

    def add(self, x, y):
        """x + y"""
        return facula.add(x, y)

    def add_scalar(self, x, y):
        """x + y of a tensor and a number."""
        return facula.add(x, y)

    def mul(self, x, y):
        """x * y"""
        return facula.mul(x, y)

    def mul_scalar(self, x, y):
        """x * y of a tensor and a number."""
        return facula.mul(x, y)

    def cat(self, x, dim=0):
        """The tensors joined along `dim`."""
        return facula.cat(x, dim=dim)

    def add_relu(self, x, y):
        """What is positive of x + y."""
        return F.relu(facula.add(x, y))

    def matmul(self, x, y):
        """The product of matrices."""
        return facula.matmul(x, y)


class QFunctional(ScaledModule):
    """Arithmetic of quantized numbers.

    Attributes:
        scale (float), zero_point (int): of the results.
    """

    def __init__(self):
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = Identity()

    def forward(self, x):
        """Raises RuntimeError: the methods are what is called."""
        raise RuntimeError(
            f"{type(self).__name__}(): expected a call of one of its methods, such as add()"
        )

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def _run(self, name, *args):
        operator = getattr(facula.ops.quantized, name)
        return self.activation_post_process(operator(*args, self.scale, self.zero_point))

    def add(self, x, y):
        """x + y"""
        return self._run("add", x, y)

    def add_scalar(self, x, y):
        """x + y of a tensor and a number, which the zero point takes up."""
        return facula.ops.quantized.add_scalar(x, y)

    def mul(self, x, y):
        """x * y"""
        return self._run("mul", x, y)

    def mul_scalar(self, x, y):
        """x * y of a tensor and a number, which the scale takes up."""
        return facula.ops.quantized.mul_scalar(x, y)

    def cat(self, x, dim=0):
        """The tensors joined along `dim`."""
        operator = facula.ops.quantized.cat
        joined = operator(x, scale=self.scale, zero_point=self.zero_point, dim=dim)
        return self.activation_post_process(joined)

    def add_relu(self, x, y):
        """What is positive of x + y."""
        return self._run("add_relu", x, y)

    def matmul(self, x, y):
        """The product of matrices."""
        return self._run("matmul", x, y)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared FloatFunctional.

        Raises:
            AssertionError: another class.
        """
        if type(mod) is not FloatFunctional:
            raise AssertionError(
                f"QFunctional.from_float expects an instance of FloatFunctional; got {type(mod)}"
            )
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
