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

// x^y for x from 0 to infinity, but for 1^infinity and infinity^0, which are NaN as 0 times
// infinity is; NaN for NaN.
FACULA_SCALAR double power_of_size(double x, double y) {
  constexpr double inf = infinity<double>;
  double r = pow_magnitude(x > 0.0 && x < inf ? x : 2.0, y);
  r = x == 0.0 ? (y < 0.0 ? inf : 0.0) : r;
  r = x == inf ? (y < 0.0 ? 0.0 : inf) : r;
  r = abs(y) == inf ? ((x > 1.0) == (y > 0.0) ? inf : 0.0) : r;
  return is_nan(x) || is_nan(y) ? quiet_nan<double> : r;
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
