// Inverses of square matrices.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Inverts each matrix of A (..., n, n) into `inverse`. `status` (...) receives 0, or the number,
// from 1, of the first pivot that is zero: that matrix has no inverse.
void invert(const Tensor& A, const Tensor& inverse, const Tensor& status);

}  // namespace facula::cpu
