// Copies where a tensor is not on the host: across devices, and within one.
#pragma once
#include "core/tensor.h"

namespace facula {

// Copies src into self, which is not on the host or whose src is not; sizes are broadcast. With
// `non_blocking`, copies between a device and page-locked memory of the same geometry are only
// given to the device's current stream.
void copy_by_device(const Tensor& self, const Tensor& src, bool non_blocking);

// Sets all elements to the one of `value`, a 0-dim tensor of the host with self's dtype, where that
// is one byte repeated and the device can do it; false otherwise.
bool fill_by_device(const Tensor& self, const Tensor& value);

// Uninitialised host memory that the process's accelerator has page-locked. RuntimeError where
// there is none.
Tensor empty_pinned(IntSpan sizes, IntSpan strides, DType dtype);

}  // namespace facula
