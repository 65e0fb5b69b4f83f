// Factors of positive definite matrices, and systems with triangular ones.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Factors each Hermitian matrix of A (..., n, n) as L L^H, or as U^H U if `upper`, reading the
// triangle of that name. `status` (...) receives 0, or the order, from 1, of the first leading
// minor that is not positive: from there on the factor is unspecified.
void cholesky(const Tensor& A, bool upper, const Tensor& factor, const Tensor& status);

// Solves A X = B for triangular matrices A (..., n, n) and B (..., n, k), whose leading sizes are
// broadcast to those of X. Only the triangle named is read, and without its diagonal if that is
// `unit`.
void solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool unit, const Tensor& X);

// Each matrix with its rows as columns, as a view.
Tensor matrix_transposed(const Tensor& t);

}  // namespace facula::cpu
