// Least squares, by LAPACK's four drivers.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

enum class LeastSquares : uint8_t { Gels, Gelsy, Gelsd, Gelss };

// Minimises |A X - B| for each matrix of A (..., m, n), which is spoilt. B (..., max(m, n), k) has
// B in its first m rows and receives X in its first n; below that, with full rank, what makes up
// the residuals. Both stand column by column. rank (...) and values (..., min(m, n)) receive what
// the driver finds, unless they are undefined. LinAlgError where a matrix lacks the full rank that
// Gels needs.
void least_squares(LeastSquares driver, const Tensor& A, const Tensor& B, double rcond,
                   const Tensor& rank, const Tensor& values);

}  // namespace facula::cpu
