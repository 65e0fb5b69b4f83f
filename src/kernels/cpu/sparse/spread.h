// Rows of values at their places among zeros.
#pragma once
#include "core/tensor.h"

namespace facula::cpu::sparse {

// A tensor (places, inner...) of zeros in which row at[i] is values[i]; values (n, inner...), at
// (n) int64 and strictly ascending, both contiguous on the CPU. Threads write ranges of rows, zeros
// and values together, so that memory is passed once. Zeros come out positive, as in sums.
// RuntimeError where a place lies outside or does not ascend.
Tensor spread_rows(const Tensor& values, const Tensor& at, int64_t places);

}  // namespace facula::cpu::sparse
