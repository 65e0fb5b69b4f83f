// What operators that pick one of two elements share: their loops, and the gradient of what won.
#pragma once
#include "dispatch/rules.h"
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/minmax.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"

namespace facula {

// Of records in two files; instantiated for minmax.cpp.
inline constexpr KernelRef maximum_loops = cpu::binary<scalar::maximum>;
inline constexpr KernelRef minimum_loops = cpu::binary<scalar::minimum>;

// Whole where this side won, half at ties, nothing where it lost.
inline Tensor winner_gradient(const Tensor& grad, const Tensor& a, const Tensor& b,
                              const Tensor& lost) {
  return ops::where(ops::eq(a, b), ops::div(grad, 2), ops::where(lost, 0, grad));
}

// The gradient of one argument of two, which lost where `Lost` compares it so to the other.
template <auto Lost>
Tensor gradient_where_won(Backward& b, Name one, Name other) {
  return winner_gradient(b.grad(), b[one], b[other], Lost(b[one], b[other]));
}

inline Tensor is_less(const Tensor& a, const Tensor& b) { return ops::lt(a, b); }
inline Tensor is_greater(const Tensor& a, const Tensor& b) { return ops::gt(a, b); }

}  // namespace facula
