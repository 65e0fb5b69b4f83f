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


@_operator("detach_(Tensor(a!) self) -> Tensor(a!)")
def _detach_(self):
    return self.detach_()


@_operator("sym_size.int(Tensor self, int dim) -> SymInt")
def _sym_size(self, dim):
    return self.shape[dim]


@_operator("sym_stride.int(Tensor self, int dim) -> SymInt")
def _sym_stride(self, dim):
    return self.stride(dim)


@_operator("_assert_scalar(Scalar self, str assert_msg) -> ()")
def _assert_scalar(self, assert_msg):
    if not self:
        raise RuntimeError(assert_msg)


@_operator("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()")
@_operator("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()")
def _sym_constrain_range(size, *, min=None, max=None):
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(
            f"sym_constrain_range(): expected a number in [{min}, {max}]; got {size}"
        )


@_operator(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, "
    "ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()"
)
def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    wanted = {"size": size, "stride": stride, "dtype": dtype, "device": device, "layout": layout}
    found = {
        "size": list(a.shape),
        "stride": list(a.stride()) if stride is not None else None,
        "dtype": a.dtype,
        "device": a.device,
        "layout": a.layout,
    }
    for name, value in wanted.items():
        if value is not None and value != found[name]:
            raise RuntimeError(
                f"_assert_tensor_metadata(): expected {name} {value}; got {found[name]}"
            )


_FLOAT8 = (
    facula.float8_e4m3fn,
    facula.float8_e5m2,
    facula.float8_e4m3fnuz,
    facula.float8_e5m2fnuz,
)


@_operator(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor"
)
def _scaled_mm(
    self,
    mat2,
    scale_a,
    scale_b,
    bias=None,
    scale_result=None,
    out_dtype=None,
    use_fast_accum=False,
):
    """Product of two matrices of 8-bit floats and their scales; see `nn.functional.scaled_mm`.

    A result of 8 bits is divided by `scale_result`, and numbers beyond the greatest become that.
    """
    _check_scales(self, mat2, scale_a, scale_b)
    product = (self.float() @ mat2.float()) * scale_a * scale_b
    if bias is not None:
        if bias.numel() != mat2.shape[1]:
            raise RuntimeError(
                f"_scaled_mm(): expected a bias of {mat2.shape[1]} elements; got {bias.numel()}"
            )
        product = product + bias.reshape(-1).float()
    out_dtype = out_dtype or self.dtype
    if out_dtype in _FLOAT8:
        product = product if scale_result is None else product / scale_result
        greatest = facula.finfo(out_dtype).max
        product = product.clamp(-greatest, greatest)
    return product.to(out_dtype)


def _check_scales(a, b, scale_a, scale_b):
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"_scaled_mm(): expected matrices (M, K) and (K, N); got {tuple(a.shape)} and "
            f"{tuple(b.shape)}"
        )
    if a.dtype not in _FLOAT8 or b.dtype not in _FLOAT8:
        raise ValueError(f"_scaled_mm(): expected float8 matrices; got {a.dtype} and {b.dtype}")
    of_one = scale_a.numel() == scale_b.numel() == 1
    of_rows = scale_a.shape == (a.shape[0], 1) and scale_b.shape == (1, b.shape[1])
    if not (of_one or of_rows) or {scale_a.dtype, scale_b.dtype} != {facula.float32}:
        raise ValueError(
            f"_scaled_mm(): expected float32 scales of one element each, or ({a.shape[0]}, 1) and "
            f"(1, {b.shape[1]}); got {scale_a.dtype} {tuple(scale_a.shape)} and {scale_b.dtype} "
            f"{tuple(scale_b.shape)}"
        )
