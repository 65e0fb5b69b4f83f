// Functions around the normal distribution and entropy: erfcx, erfinv, ndtr, ndtri, log_ndtr, entr,
// xlogy, xlog1py, logit. Bounds (units in the last place) for double: erfinv 2.5, ndtri 3,
// erfcx 1.5, entr and xlogy 1.5 (for float too), ndtr 25 down to -5; other float results are
// rounded nearly right.
#pragma once
#include "kernels/scalar/math.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

constexpr double root_half = 0.7071067811865476, root_pi = 1.772453850905516;

FACULA_SCALAR_SLOW double erfcx_value(double x) {
  if (is_nan(x)) return x;
  if (x < -26.7) return infinity<double>;
  const double square = x * x;
  if (x < 0.5) {
    const auto p = two_prod(x, x);
    const double e = exp_fine(p.hi, p.lo);
    return x < -6.0 ? 2.0 * e : e * erfc(x);
  }
  if (x <= 28.0) {
    const auto y = erfcx_middle(x);
    return y.hi + y.lo;
  }
  if (x > 1e8) return 1.0 / (x * root_pi);
  const double z = 0.5 / square;
  return (1.0 - z * (1.0 - 3.0 * z * (1.0 - 5.0 * z * (1.0 - 7.0 * z)))) / (x * root_pi);
}

// The point a >= 0 with P(normal < -a) = p, 0 < p <= 1/2: a rational start, then Halley's steps
// on the scaled tail, so that tiny p lose nothing.
FACULA_SCALAR_SLOW double upper_quantile(double p) {
  const double t = sqrt(-2.0 * log(p));
  double a = t - poly(t, 2.515517, 0.802853, 0.010328) / poly(t, 1.0, 1.432788, 0.189269, 0.001308);
  for (int i = 0; i < 3; ++i) {
    const auto square = two_prod(0.5 * a, 0.5 * a);
    const double grow = exp_fine(square.hi, square.lo);
    const double gap = (0.5 * erfcx_value(a * root_half) - p * grow * grow) * 2.5066282746310002;
    a += gap / (1.0 + 0.5 * a * gap);
  }
  return a;
}

// Halley's steps on erf as a sum where that has a short form: up to erf(1).
FACULA_SCALAR_SLOW double erfinv_value(double x) {
  const double a = abs(x);
  if (!(a < 1.0)) return a == 1.0 ? copysign(infinity<double>, x) : quiet_nan<double>;
  if (a > 0.84) return copysign(upper_quantile(0.5 * (1.0 - a)) * root_half, x);
  const double z = x * x;
  double y = 0.886226925452758 * x * poly(z, 1.0, 0.2617993877991494, 0.14393173084921979);
  for (int i = 0; i < 3; ++i) {
    const auto sum = fast_two_sum(y, y * erf_tail(y * y));
    const double gap = ((sum.hi - x) + sum.lo) * exp(y * y) * 0.886226925452758;
    y -= gap / (1.0 + y * gap);
  }
  return x == 0.0 ? x : y;
}

FACULA_SCALAR_SLOW double ndtri_value(double p) {
  if (!(p > 0.0 && p < 1.0)) {
    return p == 0.0 ? -infinity<double> : (p == 1.0 ? infinity<double> : quiet_nan<double>);
  }
  if (p > 0.25 && p < 0.75) return erfinv_value(2.0 * p - 1.0) / root_half;
  return p < 0.5 ? -upper_quantile(p) : upper_quantile(1.0 - p);
}

FACULA_SCALAR_SLOW double log_ndtr_value(double x) {
  const double t = x * root_half;
  return x < -1.0 ? log(0.5 * erfcx_value(-t)) - t * t : log1p(-0.5 * erfc(t));
}

}  // namespace detail

template <class T>
FACULA_SCALAR T erfcx(T x) {
  return static_cast<T>(detail::erfcx_value(x));
}
template <class T>
FACULA_SCALAR T erfinv(T x) {
  return static_cast<T>(detail::erfinv_value(x));
}
template <class T>
FACULA_SCALAR T ndtr(T x) {
  return static_cast<T>(0.5 * erfc(-static_cast<double>(x) * detail::root_half));
}
template <class T>
FACULA_SCALAR T ndtri(T p) {
  return static_cast<T>(detail::ndtri_value(p));
}
template <class T>
FACULA_SCALAR T log_ndtr(T x) {
  return static_cast<T>(detail::log_ndtr_value(x));
}
// -x log(x), -infinity for negative x.
template <class T>
FACULA_SCALAR T entr(T x) {
  const T y = x > T(0) ? -x * log(x) : (x == T(0) ? T(0) : -detail::infinity<T>);
  return is_nan(x) ? x : y;
}
// x log(y), zero where x is zero and y is not nan.
template <class T>
FACULA_SCALAR T xlogy(T x, T y) {
  return is_nan(y) ? y : (x == T(0) ? T(0) : x * log(y));
}
template <class T>
FACULA_SCALAR T xlog1py(T x, T y) {
  return is_nan(y) ? y : (x == T(0) ? T(0) : x * log1p(y));
}
// log(x / (1 - x)).
template <class T>
FACULA_SCALAR T logit(T x) {
  return log(x / (T(1) - x));
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
