// Functions around the normal distribution and entropy: erfcx, erfinv, ndtr, ndtri, log_ndtr, entr,
// xlogy, xlog1py, logit. Bounds (units in the last place) for double: erfinv and ndtri 3,
// erfcx 1.5, entr and xlogy 1.5 (for float too), ndtr 6 to -37; other float results are
// rounded nearly right.
#pragma once
#include <iterator>
#include <type_traits>

#include "kernels/scalar/chebyshev.h"
#include "kernels/scalar/math.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

constexpr double root_half = 0.7071067811865476, root_pi = 1.772453850905516;

// e^(x^2) erfc(x) of a large x by its asymptotic series; half = 1 / (2 x^2).
FACULA_SCALAR double erfcx_far(double x, double half) {
  const double sum = poly(half, 1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0);
  return sum / (x * root_pi);
}

// erfc(x) for |x| < 1/2.
FACULA_SCALAR Pair<double> erfc_near_zero(double x) {
  const auto less = fast_two_sum(1.0, -x);
  return fast_two_sum(less.hi, less.lo - x * erf_tail(x * x));
}

// |erfinv(x)| where w = -log(1 - x^2) is at least 5 (M. Giles, "Approximating the erfinv function",
// 2012); results of type T, as floats need the first terms only.
template <class T, class D>
FACULA_SCALAR D erfinv_tail(D w) {
  constexpr int terms = std::is_same_v<T, float> ? 14 : std::size(series::erfinv_tail);
  const D t = sqrt(w);
  return t + chebyshev_by_powers<series::erfinv_tail, terms>(t, 2.2, 6.1);
}
template <class T, class D>
FACULA_SCALAR D erfinv_center(D x, D w) {
  if constexpr (std::is_same_v<T, float>)
    return x * chebyshev_of_unit<series::erfinv_center, 12>(multiply_add(w, 0.4, -1.0));
  else
    return x * chebyshev_by_powers<series::erfinv_center, std::size(series::erfinv_center)>(w, 0.0,
                                                                                            5.0);
}

// A logarithm in double, as good as a result of this type needs.
template <class T, class D>
FACULA_SCALAR D log_for(D x) {
  if constexpr (std::is_same_v<T, float>)
    return log_special(x, log_short(x));
  else
    return log_by_parts(x);
}

// log(x) to 2^-32 (2^-53), as far from zero as near it: beside erfinv_center's first coefficient a
// small logarithm adds little.
template <class T, class D>
FACULA_SCALAR D log_for_erfinv(D x) {
  using Table = NaturalLogTable<double>;
  const auto [k, f, m] = log_parts_of_powers(x);
  const auto j = to_bits(m) >> (Ieee<double>::mantissa_bits - 4);
  const D z = fma(m, entry_of(InverseTable<double>::at, j), -1.0), square = z * z;
  const D base = multiply_add(k, 0x1.62e42fefa39efp-1, entry_of(Table::high, j));
  if constexpr (std::is_same_v<T, float>) {
    const D curve =
        poly(z, -0.4999998357480616, 0.3333472527279611, -0.2503094364454949, 0.1909830887769792);
    return base + multiply_add(square, curve, z);
  } else {
    const D curve = poly(z, -0.4999999999999946, 0.33333333333363546, -0.2500000000279921,
                         0.19999999918224542, -0.16666661665562332, 0.14285767951908035,
                         -0.12503747653636638, 0.11116357156959798, -0.0901248791022692);
    return base + (z + multiply_add(square, curve, entry_of(Table::rest, j)));
  }
}

template <class T, class D>
FACULA_SCALAR D erfinv_value(D x) {
  // 1 - x^2: the square of a float is exact.
  const D left = std::is_same_v<T, float> ? multiply_add(-x, x, 1.0) : (D(1.0) - x) * (x + 1.0);
  const D l = log_for_erfinv<T>(left), center = erfinv_center<T>(x, -l);
  const auto is_center = abs(x) < D(0.9966252);  // where the logarithm is above -5
  if (all_of_pack<D>(is_center)) return center;
  const D w = -log_special(left, l), tail = pick(w == D(infinity<double>), w, erfinv_tail<T>(w));
  return pick(is_center, center, copysign(tail, x));
}

// sqrt(2) erfinv(2 p - 1), with 1 - x^2 as 4 p (1 - p): a tiny p loses nothing.
template <class T>
FACULA_SCALAR double ndtri_value(double p) {
  constexpr int terms = std::is_same_v<T, float> ? 20 : std::size(series::erfinv_far);
  const double x = 2.0 * p - 1.0, w = -log_for<T>(4.0 * p * (1.0 - p));
  // All of them are computed and one is taken: loops become vectors.
  const double center = erfinv_center<T>(x, w), near = erfinv_tail<T>(w), t = sqrt(w),
               far = t + chebyshev_by_powers<series::erfinv_far, terms>(t, 6.1, 27.4);
  const double tail = w < 37.21 ? near : (w == infinity<double> ? w : far);
  return (w < 5.0 ? center : copysign(tail, x)) / root_half;
}

// erfc, and e^(x^2) erfc(x) from 0.5 to `erfcx_end`, as good as a result of this type needs.
template <class T>
FACULA_SCALAR double erfc_for(double x) {
  if constexpr (std::is_same_v<T, float>)
    return erfc_short(x);
  else
    return erfc_by_quotient(x);
}
template <class T>
constexpr double erfcx_end = std::is_same_v<T, float> ? 10.3 : 28.0;
template <class T>
FACULA_SCALAR double erfcx_for(double x) {
  if constexpr (std::is_same_v<T, float>) return erfcx_short(x);
  const auto y = erfcx_middle(x);
  return y.hi + y.lo;
}
// Beside zero e^(x^2) erfc(x), on either side of it the series or, for the mirrored argument, what
// is left of 2 e^(x^2). All of them are computed and one is taken: loops become vectors.
template <class T>
FACULA_SCALAR double erfcx_value(double x) {
  constexpr double end = erfcx_end<T>;
  const double a = abs(x), grown = x < -26.7 ? -26.7 : (x > 0.5 ? 0.5 : x);
  const bool near = a < 0.5;
  const double small = near ? x : 0.0, bounded = a > 0.5 ? (a < end ? a : end) : 0.5;
  const double far = erfcx_far(a, 0.5 / (a * a)), size = a > end ? far : erfcx_for<T>(bounded);
  double power, middle;
  if constexpr (std::is_same_v<T, float>) {
    power = exp_short(between(grown * grown, 0.0, 200.0));
    middle = power * (1.0 - erf_small(small));
  } else {
    const auto square = two_prod(grown, grown);
    power = exp_fine(square.hi, square.lo);
    const auto beside = erfc_near_zero(small);
    middle = multiply_add(power, beside.hi, power * beside.lo);
  }
  const double y = x < 0.0 ? 2.0 * power - size : size;
  return is_nan(x) ? x : (near ? middle : y);
}
// The normal distribution function at -a for a >= 0, by (a + c) e^(a^2 / 2) times it, which is
// smooth in t = (a - c) / (a + c) from -1 on: one quotient and no other path, in double for a float
// result.
template <class L, class T>
FACULA_SCALAR T normal_tail(T a) {
  if constexpr (std::is_same_v<L, float>) {
    const T bounded = at_most(a, 14.6), inverse = quotient(T(1), bounded + T(5));
    const T curve =
        poly(multiply_add(inverse, -10.0, 1.0), 0.7691930497163068, -0.6653825018248704,
             0.49530561971002285, -0.31353321100223824, 0.16502027991028473, -0.06911788168379948,
             0.020796041574363714, -0.0029975977361349675, -0.0008036629962166255,
             0.0005545138455281684, -4.3195990226969306e-05, -5.518983167299851e-05);
    return exp_short(bounded * bounded * T(-0.5)) * (curve * inverse);
  } else {
    const T bounded = at_most(a, 39.0), inverse = T(1) / (bounded + T(4));
    const auto square = two_prod(bounded, bounded * T(0.5));
    const auto e = exp_by_table(-square.hi, -square.lo);
    const T curve =
        poly(multiply_add(inverse, -8.0, 1.0), 0.7552851304157515, -0.6078966419718921,
             0.38713740074221453, -0.18652185795965726, 0.06039657489093656, -0.007540188966726791,
             -0.003479692367393595, 0.0016308184575887011, 0.00013334431240964574,
             -0.000231094935169459, -1.9082584797734333e-06, 3.5144686053003464e-05,
             7.166663245221031e-07, -5.9201733230161025e-06, -6.296965605815823e-07,
             1.0215540371961016e-06, 2.7180452962592834e-07, -1.549649174224745e-07,
             -8.540841815685125e-08, 1.3280797787310328e-08, 1.961961086135556e-08,
             1.91827702037334e-09, -2.5220994578780736e-09, -7.262419810409579e-10);
    const T y = e.power * (curve * inverse);
    return scaled(multiply_add(y, e.small, y), exponent_of(e));
  }
}
template <class L, class T>
FACULA_SCALAR T normal_value(T x) {
  const T tail = normal_tail<L>(abs(x));
  return pick(x > T(0), T(1) - tail, tail);
}
// Below -1 log(erfcx(-t) / 2) - t^2, above it log(1 - erfc(t) / 2), t = x / sqrt(2): both
// arguments are computed and one logarithm is taken, so that loops become vectors.
template <class T>
FACULA_SCALAR double log_ndtr_value(double x) {
  const double t = x * root_half, a = -t, square = t * t, below = 0.5 * erfc_for<T>(t);
  const double least = a > 0.5 ? a : 0.5, bounded = least < erfcx_end<T> ? least : erfcx_end<T>;
  const double near = erfcx_for<T>(bounded), far = erfcx_far(a, 0.5 / square);
  const bool low = x < -1.0;
  const double u = low ? 0.5 * (a > erfcx_end<T> ? far : near) : 1.0 - below;
  const double l = log_for<T>(u), high = u == 1.0 ? -below : l - (below + (u - 1.0)) / u;
  return is_nan(x) ? x : (low ? l - square : high);
}

}  // namespace detail

template <class T>
FACULA_SCALAR T erfcx(T x) {
  return static_cast<T>(detail::erfcx_value<T>(x));
}
template <class T>
FACULA_SCALAR T erfinv(T x) {
  if constexpr (of_floats<T>)
    return by_doubles(
        x, [](auto v) __attribute__((always_inline)) { return detail::erfinv_value<float>(v); });
  else
    return detail::erfinv_value<double>(x);
}
template <class T>
FACULA_SCALAR T ndtr(T x) {
  if constexpr (of_floats<T>)
    return by_doubles(
        x, [](auto v) __attribute__((always_inline)) { return detail::normal_value<float>(v); });
  else
    return detail::normal_value<double>(x);
}
template <class T>
FACULA_SCALAR T ndtri(T p) {
  return static_cast<T>(detail::ndtri_value<T>(p));
}
template <class T>
FACULA_SCALAR T log_ndtr(T x) {
  return static_cast<T>(detail::log_ndtr_value<T>(x));
}
// -x log(x), -infinity for negative x.
template <class T>
FACULA_SCALAR T entr(T x) {
  const T y = x > T(0) ? -x * log_by_parts(x) : (x == T(0) ? T(0) : -detail::infinity<T>);
  return is_nan(x) ? x : y;
}
// x log(y), zero where x is zero and y is not nan.
template <class T>
FACULA_SCALAR T xlogy(T x, T y) {
  return is_nan(y) ? y : (x == T(0) ? T(0) : x * log_by_parts(y));
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
