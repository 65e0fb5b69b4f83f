// Discrete Fourier transforms along one dimension, of float, double and their complex numbers.
#pragma once
#include "core/tensor.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Each takes tensors of any strides and multiplies its results by `scale`. The exponent is negative
// where it goes forward, as from real numbers, and positive backward, as to real numbers.
//
// transform_complex: `to` has the sizes of `from`, and may be the same tensor.
// transform_from_real: of n real numbers the first to.size(dim) of the n coefficients, which are
// n / 2 + 1 or all.
// transform_to_real: to.size(dim) = n real numbers from the first n / 2 + 1 coefficients; what the
// first and, for an even n, the last of these have for imaginary part counts as zero.
FACULA_PER_ISA(void transform_complex(const Tensor& from, const Tensor& to, int64_t dim,
                                      double scale, bool forward);
               void transform_from_real(const Tensor& from, const Tensor& to, int64_t dim,
                                        double scale);
               void transform_to_real(const Tensor& from, const Tensor& to, int64_t dim,
                                      double scale);)

}  // namespace facula::cpu
