// Exponentials of square matrices.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // The exponential of each matrix of self (..., n, n); NaN where a matrix has an infinity or
    // NaN. Half types are computed in float.
    void matrix_exp(const Tensor& self, const Tensor& result);)

inline constexpr KernelRef matrix_exp_kernel = FACULA_BY_ISA(matrix_exp);

}  // namespace facula::cpu
