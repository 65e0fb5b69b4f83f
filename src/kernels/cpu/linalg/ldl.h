// L D L^T of symmetric and L D L^H of Hermitian matrices, with Bunch's and Kaufman's pivots.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Factors each matrix of A (..., n, n), of which the lower triangle is read. LD has D, with blocks
// of one or two rows, and L below it; pivots (..., n) and info (...) are LAPACK's.
void ldl_factor(const Tensor& A, bool hermitian, const Tensor& LD, const Tensor& pivots,
                const Tensor& info);

// Solves A X = B with the factors of A; leading sizes are broadcast to those of X.
void ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian,
               const Tensor& X);

}  // namespace facula::cpu
