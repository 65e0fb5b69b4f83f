// Gradients of products of Householder's reflectors.
#pragma once
#include "core/tensor.h"

namespace facula::linalg {

struct ReflectorGradients {
  Tensor vectors, factors;
};

// Of Y = Q C, Q = H1 H2 ... Hk with H = I - tau v v^H, or of Y = Q^H C if `adjoint`. The vectors
// stand below the diagonal of `vectors` (..., m, n), with a one on it; tau (..., k), C and the
// gradient `grad` of Y (..., m, c).
ReflectorGradients reflector_gradients(const Tensor& vectors, const Tensor& tau, const Tensor& C,
                                       const Tensor& grad, bool adjoint);

}  // namespace facula::linalg
