// The cheaper gelu of fused bfloat16 products.
#pragma once
#include "kernels/scalar/math.h"

namespace facula::scalar {

// gelu (with erf) for results that are rounded to bfloat16: to 2^-15. Below -5.55, where results
// are less than 8e-8, they are zeros.
struct gelu_erf_coarse {
  template <class T>
  FACULA_SCALAR static T call(T x) {
    namespace m = math;
    const T a = m::abs(x), bounded = m::at_most(a, 5.55f);
    // The logarithm to base 2 of the normal distribution's tail beyond a.
    const T p = m::detail::poly(bounded, -1.0000384f, -1.150549f, -0.4604129f, -0.05189829f,
                                0.007460387f, -0.0006560404f, 2.5828369e-05f);
    using B = m::detail::Bits<T>;
    const T shifted = p + T(m::detail::Ieee<float>::round_magic);
    const T rest = p - (shifted - T(m::detail::Ieee<float>::round_magic));
    const T unit =
        m::detail::poly(rest, 0.9999993f, 0.6931218f, 0.24024744f, 0.05591786f, 0.009570101f);
    // The integer part goes to the exponent.
    const B bits = m::detail::to_bits(unit) +
                   (m::detail::to_bits(shifted) << m::detail::Ieee<float>::mantissa_bits);
    const T power = m::detail::from_bits<T>(bits);
    const T tail = m::pick(a > T(5.55f), T(0.0f), power);
    return x * m::pick(x < T(0.0f), tail, T(1.0f) - tail);
  }
};

}  // namespace facula::scalar
