// Determinants out of LU factors.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// The determinants of the matrices that LU (..., n, n) and pivots (..., n) are factors of.
void determinant(const Tensor& LU, const Tensor& pivots, const Tensor& result);

// Their signs (of complex ones: phases), and the logarithms of their absolute values: 0 and
// -infinity of singular matrices.
void log_determinant(const Tensor& LU, const Tensor& pivots, const Tensor& sign,
                     const Tensor& logarithm);

}  // namespace facula::cpu
