// Derivatives of elementwise operators whose slope is one over something.
#pragma once
#include "dispatch/rules.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/shape/view.h"

namespace facula::ops {

// The gradient divides by `denominator` itself: one rounding less than a product with its
// reciprocal, which is the local derivative that forward mode takes.
template <DerivativeRule denominator>
constexpr Derivative over(std::string_view input, Names saved) {
  const DerivativeRule slope = [](Backward& x) { return reciprocal(denominator(x)); };
  const DerivativeRule quotient = [](Backward& b) {
    const Tensor d = denominator(b);
    return div(b.grad(), is_complex(d.dtype()) ? conj(d) : d);
  };
  return {Names::of(input), saved, slope, quotient, nullptr};
}

}  // namespace facula::ops
