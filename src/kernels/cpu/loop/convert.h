// Copies between geometries and dtypes.
#pragma once
#include "core/scalar.h"
#include "core/tensor.h"

namespace facula::cpu {

// Copies src, broadcast to dst's shape, converting; conjugates or negates where the bits differ.
void copy(const Tensor& dst, const Tensor& src, const char* op = "copy_");
// A tensor of dtype `to` with the same shape; strides kept where dense.
Tensor converted(const Tensor& t, DType to);
// A contiguous tensor of the same dtype: t itself where it is contiguous.
Tensor contiguous(const Tensor& t);
// Sets every element.
void fill(const Tensor& t, const Scalar& value);

}  // namespace facula::cpu
