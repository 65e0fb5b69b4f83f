// Eigenvalues and eigenvectors, by LAPACK.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// What a status says of a matrix that has an infinity or NaN: LAPACK is not asked.
inline constexpr int32_t not_finite = -1;

// Eigenvalues (..., n), in ascending order, of Hermitian matrices A (..., n, n), of which the upper
// or the lower triangle is read, and eigenvectors as columns; undefined `vectors`: values alone.
// `status` (...) receives 0, not_finite, or LAPACK's code where it did not converge.
void eigh(const Tensor& A, bool upper, const Tensor& values, const Tensor& vectors,
          const Tensor& status);

// Eigenvalues of square matrices A and their eigenvectors of norm 1 as columns, both complex;
// undefined `vectors`: values alone. `status` as above.
void eig(const Tensor& A, const Tensor& values, const Tensor& vectors, const Tensor& status);

}  // namespace facula::cpu
