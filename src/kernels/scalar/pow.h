// pow for real numbers, C99's special cases. Bounds: float 0.51, double 0.55 units in the
// last place.
#pragma once
#include "kernels/scalar/log.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

template <class T>
FACULA_SCALAR Pair<T> pair_prod(Pair<T> a, Pair<T> b) {
  const auto p = two_prod(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

// log(x) to about 2^-65 of its size, x positive and finite. In s = f / (2 + f) the terms up to s^3
// are kept as pairs; the rest is below 2^-11 of the first.
template <class T>
FACULA_SCALAR Pair<T> log_precise(T x) {
  const auto [k, f, m] = log_parts(x);
  const auto den = fast_two_sum(T(2.0), f);
  const T inverse = T(1.0) / den.hi, s_hi = f * inverse;
  const T s_lo = (fma(-s_hi, den.hi, f) - s_hi * den.lo) * inverse;
  const Pair<T> s = fast_two_sum(s_hi, s_lo), z = pair_prod(s, s), cube = pair_prod(z, s);
  const auto third = pair_prod(cube, Pair<T>{T(0x1.5555555555555p-1), T(0x1.5555555555555p-55)});
  const T rest =
      cube.hi * z.hi *
      poly(z.hi, 0.3999999999999998, 0.2857142857144522, 0.2222222221751074, 0.18181818873475286,
           0.15384556655076195, 0.1333632573805655, 0.11674649383338231, 0.11990423850568527);
  const auto head = fast_two_sum(T(2.0) * s.hi, third.hi);
  const auto log_m = fast_two_sum(head.hi, head.lo + (T(2.0) * s.lo + third.lo + rest));
  // ln 2 in 42 bits, so that k times it is exact.
  const auto sum = fast_two_sum(k * T(0x1.62e42fefa3800p-1), log_m.hi);
  return fast_two_sum(sum.hi, sum.lo + (log_m.lo + k * T(0x1.ef35793c76730p-45)));
}

template <class T>
FACULA_SCALAR T pow_magnitude(T x, T y) {
  const T bounded = between(y, -0x1p80, 0x1p80);  // already 0, 1 or infinity
  const auto l = log_precise(x);
  const auto p = two_prod(bounded, l.hi);
  const T lo = p.lo + bounded * l.lo, clamped = clamp_exponent(p.hi);
  return exp_fine(clamped, pick(clamped == p.hi, lo, T(0.0)));
}

// x^y for x from 0 to infinity, but for 1^infinity and infinity^0, which are NaN as 0 times
// infinity is; NaN for NaN.
template <class T>
FACULA_SCALAR T power_of_size(T x, T y) {
  const T inf = infinity<lane_t<T>>, zero = 0.0;
  T r = pow_magnitude(pick((x > zero) & (x < inf), x, T(2.0)), y);
  r = pick(x == zero, pick(y < zero, inf, zero), r);
  r = pick(x == inf, pick(y < zero, zero, inf), r);
  const auto grows = pick(x > T(1.0), y, -y) > zero;
  r = pick(abs(y) == inf, pick(grows, inf, zero), r);
  return pick(is_nan(x) | is_nan(y), T(quiet_nan<lane_t<T>>), r);
}
template <class T>
  requires(of_floats<T>)
FACULA_SCALAR T power_of_size(T x, T y) {
  return by_doubles(x, y, [](auto v, auto e) __attribute__((always_inline)) {
    return exp_short(between(e * log_special(v, log_short(v)), -200.0, 200.0));
  });
}

}  // namespace detail

template <class T>
FACULA_SCALAR T pow(T x, T y) {
  using L = lane_t<T>;
  const T size = abs(x), whole = round(y), half = y * L(0.5);
  T r = detail::power_of_size(size, y);
  r = pick((size == T(1)) & (y == y), T(1), r);
  const auto is_odd = (whole == y) & (round(half) != half);
  r = pick(is_odd, copysign(r, x), r);
  const auto has_none = (x < T(0)) & (size < T(detail::infinity<L>)) & (whole != y);
  r = pick(has_none, T(detail::quiet_nan<L>), r);
  return pick((y == T(0)) | (x == T(1)), T(1), r);
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
