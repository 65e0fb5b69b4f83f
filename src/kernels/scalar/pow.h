// pow for real numbers, C99's special cases. Bounds: float 0.51, double 0.55 units in the
// last place.
#pragma once
#include "kernels/scalar/log.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

FACULA_SCALAR Pair<double> pair_prod(Pair<double> a, Pair<double> b) {
  const auto p = two_prod(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

// log(x) to about 2^-65 of its size, x positive and finite. In s = f / (2 + f) the terms up to s^3
// are kept as pairs; the rest is below 2^-11 of the first.
FACULA_SCALAR Pair<double> log_precise(double x) {
  const auto [k, f] = log_parts(x);
  const auto den = fast_two_sum(2.0, f);
  const double s_hi = f / den.hi;
  const auto back = two_prod(s_hi, den.hi);
  const double s_lo = (((f - back.hi) - back.lo) - s_hi * den.lo) / den.hi;
  const Pair<double> s{s_hi, s_lo}, z = pair_prod(s, s), cube = pair_prod(z, s);
  const auto third = pair_prod(cube, {0x1.5555555555555p-1, 0x1.5555555555555p-55});
  const double rest =
      cube.hi * z.hi *
      poly(z.hi, 0.3999999999999998, 0.2857142857144522, 0.2222222221751074, 0.18181818873475286,
           0.15384556655076195, 0.1333632573805655, 0.11674649383338231, 0.11990423850568527);
  const auto head = fast_two_sum(2.0 * s.hi, third.hi);
  const auto log_m = fast_two_sum(head.hi, head.lo + (2.0 * s.lo + third.lo + rest));
  // ln 2 in 42 bits, so that k times it is exact.
  const auto sum = fast_two_sum(k * 0x1.62e42fefa3800p-1, log_m.hi);
  return fast_two_sum(sum.hi, sum.lo + (log_m.lo + k * 0x1.ef35793c76730p-45));
}

FACULA_SCALAR double pow_magnitude(double x, double y) {
  const double bounded = abs(y) > 0x1p80 ? copysign(0x1p80, y) : y;  // already 0, 1 or infinity
  const auto l = log_precise(x);
  const auto p = two_prod(bounded, l.hi);
  const double lo = p.lo + bounded * l.lo, clamped = clamp_exponent(p.hi);
  return exp_fine(clamped, clamped == p.hi ? lo : 0.0);
}

FACULA_SCALAR float pow_magnitude(float x, float y) {
  const double p = y * log_short(static_cast<double>(x)), low = p < -200.0 ? -200.0 : p;
  return static_cast<float>(exp_short(low > 200.0 ? 200.0 : low));
}

}  // namespace detail

template <class T>
FACULA_SCALAR T pow(T x, T y) {
  constexpr T inf = detail::infinity<T>;
  const T a = abs(x);
  T r = detail::pow_magnitude(a > T(0) && a < inf ? a : T(2), y);
  r = a == T(0) ? (y < T(0) ? inf : T(0)) : r;
  r = a == inf ? (y < T(0) ? T(0) : inf) : r;
  r = abs(y) == inf ? ((a > T(1)) == (y > T(0)) ? inf : T(0)) : r;
  r = a == T(1) ? T(1) : r;
  const bool integer = round(y) == y, odd = integer && round(y * T(0.5)) != y * T(0.5);
  r = odd && signbit(x) ? -r : r;
  r = x < T(0) && a < inf && !integer ? detail::quiet_nan<T> : r;
  r = is_nan(x) || is_nan(y) ? detail::quiet_nan<T> : r;
  return y == T(0) || x == T(1) ? T(1) : r;
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
