// Singular values and vectors, by LAPACK.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// A = U diag(S) Vh for matrices A (..., m, n), S in descending order. U (..., m, k) and Vh
// (..., k, n) with k = min(m, n), or the whole bases, square: by their sizes; undefined: S alone.
// `status` (...) receives 0, not_finite (eigen.h), or LAPACK's code where it did not converge.
void svd(const Tensor& A, const Tensor& U, const Tensor& S, const Tensor& Vh, const Tensor& status);

}  // namespace facula::cpu
