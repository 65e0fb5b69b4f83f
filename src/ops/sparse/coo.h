// What files of the family share about gradients of sparse tensors.
#pragma once
#include "core/tensor.h"

namespace facula::sparse {

// The values (nnz, dense...) that a tensor of any layout has at indices (sparse dims, nnz).
Tensor values_at(const Tensor& grad, const Tensor& indices);

// What a gradient of any layout has where `self` has elements, by operators alone: both may be
// wrapped by levels of function transforms.
Tensor values_like(const Tensor& self, const Tensor& grad);

}  // namespace facula::sparse
