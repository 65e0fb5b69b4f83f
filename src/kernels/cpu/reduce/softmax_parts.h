// What the ways of softmax share: exponentials of numbers that are not positive, and quotients.
#pragma once
#include "kernels/cpu/simd/lanes.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {

// e^x for the distance x <= 0 to the largest element: what would be subnormal is zero, so that 2^k
// is one factor. NaN stays.
template <class A>
[[gnu::always_inline]] inline A exp_below(A x) {
#if defined(__FMA__)
  using namespace scalar::math::detail;
  constexpr bool is_float = std::is_same_v<A, float>;
  constexpr A lowest = is_float ? A(-87) : A(-708);
  constexpr A ln2 = is_float ? A(0x1.62e43p-1) : A(0x1.62e42fefa39efp-1);
  constexpr A ln2_rest = is_float ? A(-0x1.05c610ca86c39p-29) : A(0x1.abc9e3b39803fp-56);
  constexpr A magic = Ieee<A>::round_magic;
  const A bounded = x < lowest ? lowest : x;
  const A shifted = scalar::math::detail::multiply_add(bounded, A(1.4426950408889634), magic);
  const A k = shifted - magic;
  const A r = scalar::math::detail::multiply_add(
      k, -ln2_rest, scalar::math::detail::multiply_add(k, -ln2, bounded));
  const A y = A(1) + scalar::math::detail::multiply_add(r * r, exp_tail(r), r);
  const Bits<A> scale = (to_bits(shifted) - to_bits(magic) + static_cast<Bits<A>>(Ieee<A>::bias))
                        << Ieee<A>::mantissa_bits;
  return x < lowest ? A(0) : y * from_bits<A>(scale);
#else
  return scalar::math::exp_coarse(x);
#endif
}

// e / sum by a product with 1 / sum and what is left over: rounded as the quotient but where it is
// subnormal.
template <class A>
[[gnu::always_inline]] inline A share_of(A e, A sum, A inverse) {
#if defined(__FMA__)
  const A share = e * inverse;
  const A rest = scalar::math::detail::multiply_add(-share, sum, e);
  return scalar::math::detail::multiply_add(rest, inverse, share);
#else
  (void)inverse;
  return e / sum;
#endif
}

// The gradient of an element: g that of its result y, sum the row's sum of `weighted`.
template <bool Log, class A>
[[gnu::always_inline]] inline A weighted(A g, A y) {
  return Log ? g : g * y;
}
template <bool Log, class A>
[[gnu::always_inline]] inline A slope(A g, A y, A sum) {
  return Log ? g - exp_below(y) * sum : (g - sum) * y;  // logarithms of shares are below zero
}

}  // namespace facula::cpu::FACULA_ISA
