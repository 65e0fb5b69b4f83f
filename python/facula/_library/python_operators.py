"""Operators of `aten` that are written in Python; loaded when a name is not among the compiled.

They are those that packages take by their name, to override them for tensors of their own.
"""

from __future__ import annotations

import facula
from facula import _C
from facula.library import Library

_library = Library("aten", "FRAGMENT")


def _operator(schema):
    def register(kernel):
        _library.impl(_library.define(schema), kernel, "CompositeImplicitAutograd")
        return kernel

    return register


@_operator("_pin_memory(Tensor self, Device? device=None) -> Tensor")
def _pin_memory(self, device=None):
    return _C._pin_memory(self)


@_operator("_is_all_true(Tensor self) -> Tensor")
def _is_all_true(self):
    if self.dtype is not facula.bool:
        raise RuntimeError(f"_is_all_true(): self must be a tensor of bools; got {self.dtype}")
    return self.all()


@_operator("_is_any_true(Tensor self) -> Tensor")
def _is_any_true(self):
    if self.dtype is not facula.bool:
        raise RuntimeError(f"_is_any_true(): self must be a tensor of bools; got {self.dtype}")
    return self.any()


@_operator("_assert_async(Tensor self) -> ()")
@_operator("_assert_async.msg(Tensor self, str assert_msg) -> ()")
def _assert_async(self, assert_msg="Expected Tensor with single nonzero value, but got zero"):
    if self.numel() != 1:
        kind = "no values" if self.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {kind} is ambiguous")
    if not self.item():
        raise RuntimeError(assert_msg or "Assertion is failed")


@_operator("_shape_as_tensor(Tensor self) -> Tensor")
def _shape_as_tensor(self):
    return facula.tensor(list(self.shape), dtype=facula.int64)


@_operator("lift(Tensor self) -> Tensor")
@_operator("lift_fresh(Tensor(a) self) -> Tensor(a)")
def _lift(self):
    return self


@_operator("lift_fresh_copy(Tensor self) -> Tensor")
def _lift_fresh_copy(self):
    return self.detach().clone()
