// What files of the family share about gradients of sparse tensors.
#pragma once
#include "core/tensor.h"

namespace facula::sparse {

// The values (nnz, dense...) that a tensor of any layout has at indices (sparse dims, nnz).
Tensor values_at(const Tensor& grad, const Tensor& indices);

}  // namespace facula::sparse
