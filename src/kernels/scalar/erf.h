// erf and erfc. Bounds (units in the last place): erf 1.2, erfc 1.0; floats 0.7, erf_coarse 1.2.
#pragma once
#include "kernels/scalar/exp.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// e^(x^2) erfc(x) for 0.5 <= x <= 28: (1 + 2 x) times it is smooth in t = (x - 3.75) / (x + 3.75),
// a first coefficient and t times the rest.
constexpr double erfcx_first = 1.2375126308378275;
template <class T>
FACULA_SCALAR T erfcx_rest(T t) {
  return poly_by_halves(t, -0.1402405985855468, 0.0035854154854671285, 0.08227673849012247,
                        -0.10880393014192978, 0.09230432116129178, -0.05869339858491565,
                        0.02836227740236346, -0.009746579621163976, 0.0017556260165495481,
                        0.0002937141582128828, -0.0002901550435675096, 5.1646699212080365e-05,
                        2.238777731691058e-05, -1.1436614838494472e-05, -9.817705904751405e-07,
                        1.7363567832819818e-06, -4.545157845707177e-08, -2.391686922351359e-07,
                        1.3595507759689386e-08, 2.4179517903334086e-08);
}

// The low part carries the rounding of the last addition and of the denominator.
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR Pair<T> erfcx_middle(T x) {
  const T t = (x - T(3.75)) / (x + T(3.75));
  const auto g = fast_two_sum<T>(erfcx_first, t * erfcx_rest(t)), den = two_sum<T>(1, x + x);
  constexpr double first_rest = 1.0546160249725448e-16;  // of the first coefficient
  const T inverse = T(1) / den.hi, q = g.hi * inverse;
  const T rest = fma(-q, den.hi, g.hi) + (g.lo + first_rest - q * den.lo);
  return {q, rest * inverse};
}

// The same to 2^-31 for 0.5 <= x <= 10.3.
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T erfcx_short(T x) {
  // (x - 3) / (x + 3) = 1 - 6 / (x + 3)
  const T low = x + T(3.0), high = multiply_add(x, 2.0, 1.0), both = quotient(T(1.0), low * high);
  const T t = (x - T(3.0)) * (both * high);
  const T g =
      poly(t, 1.2530080588172146, -0.13562110320287565, -0.04756237990456925, 0.12964499320556852,
           -0.11927154713300137, 0.06831104416433098, -0.023788819320975936, 0.002505106067201687,
           0.00195334230089077, -0.0006908556844459078, -0.0001840121136907837);
  return g * (both * low);
}

// erf(x) / x - 1 for |x| <= 1, z = x^2.
template <class T>
FACULA_SCALAR T erf_tail(T z) {
  if constexpr (of_floats<T>) {
    return poly(z, 0.12837917f, -0.3761263f, 0.11283625f, -0.026855664f, 0.005192211f,
                -0.0008047565f, 7.9882396e-05f);
  } else {
    return T(0x1.06eba8214db69p-3) +
           z * poly(z, -0.37612638903183754, 0.11283791670955122, -0.026866170645130045,
                    0.005223977625425292, -0.0008548327022056039, 0.0001205533290773902,
                    -1.492564769980577e-05, 1.6462047941013092e-06, -1.6364674872443236e-07,
                    1.4792692242202154e-08, -1.2166239207887384e-09, 8.714711234339508e-11,
                    -4.239433624031963e-12);
  }
}

// erf for |x| <= 3.93, for a float result.
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T erf_short(T x) {
  return x * poly(x * x - T(7.75), 0.35918096697234647, -0.023141603900809406, 0.002223832256275587,
                  -0.00023389897839290943, 2.510088966180181e-05, -2.652792478173322e-06,
                  2.7031566946552233e-07, -2.6257473686767167e-08, 2.3895151972276165e-09,
                  -1.994678636561379e-10, 1.6276550846831813e-11, -1.3977500846322719e-12,
                  9.362145813455723e-14, -3.068548239019097e-15, 2.5036139765866585e-16,
                  -4.594142679934748e-17, 2.338195426336288e-18);
}
// The same for |x| <= 1/2.
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T erf_small(T x) {
  const T z = x * x, tail = poly(z, 0x1.06eba8214db69p-3, -0.37612638903183754, 0.11283791670955122,
                                 -0.026866170645130045, 0.005223977625425292,
                                 -0.0008548327022056039, 0.0001205533290773902);
  return multiply_add(x, tail, x);
}

// In float alone, for results that keep fewer bits: 1 + erf(x), and 1 - erf of a large argument.
// erfc(x) = erfc_unit(x) for 1 <= x <= 3.93.
template <class T>
FACULA_SCALAR T erfc_unit(T x) {
  const T p = poly(x, -0.00035066312f, -1.6266122f, -0.919726799f, -0.149535015f, 0.0318721980f,
                   -0.00434200559f, 0.000277774758f);  // its logarithm to base 2
  const T k = round_small(p);
  return power_of_two(k) * poly(p - k, 1.0f, 0.69314718f, 0.24022651f, 0.055503596f, 0.0096180625f,
                                0.0013390985f, 0.00015462880f);
}

// erfc for x >= 0.5, as e^(-x^2) with the square's rounding carried along, times erfcx.
template <class T>
FACULA_SCALAR T erfc_tail(T x) {
  const T bounded = at_most(x, 28.0);
  const auto square = two_prod(bounded, bounded);
  const auto p = exp_argument(-square.hi, -square.lo);
  const auto e = exp_sum(T(1), p.r, p.lost), g = erfcx_middle(bounded);
  const auto product = two_prod(e.hi, g.hi);
  const T lo = multiply_add(e.lo, g.hi, multiply_add(e.hi, g.lo, product.lo));
  return scaled(product.hi + lo, p);
}

// The same for 1 <= x <= 6 in one number, good enough for 1 - erfc(x).
template <class T>
FACULA_SCALAR T erfc_tail_short(T x) {
  const auto square = two_prod(x, x);
  const auto p = exp_argument(-square.hi);
  const T e = T(1) + (p.r + multiply_add(p.r * p.r, exp_tail(p.r), p.lost - square.lo));
  // One quotient serves both divisors.
  const T low = x + T(3.75), high = multiply_add(x, 2.0, 1.0), both = T(1) / (low * high);
  const T t = (x - T(3.75)) * (both * high);
  return scaled(e * multiply_add(t, erfcx_rest(t), erfcx_first) * (both * low), p);
}

// erfc for a float result.
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T erfc_short(T x) {
  const T a = abs(x), bounded = between(a, 0.5, 10.3);
  const auto near = a < T(0.5);
  const T tail = exp_short(-(bounded * bounded)) * erfcx_short(bounded);
  const T mirrored = pick(x < T(0.0), T(2.0) - tail, tail);
  return pick(near, T(1.0) - erf_small(pick(near, x, T(0.0))), mirrored);
}

}  // namespace detail

template <class T>
FACULA_SCALAR T erf(T x) {
  const T a = abs(x);
  if constexpr (of_floats<T>) {
    const T y = by_doubles(at_most(a, 3.93f), [](auto v) __attribute__((always_inline)) {
      return detail::erf_short(v);
    });
    return copysign(pick(a > T(3.92f), T(1), y), x);
  } else {
    const T small = detail::multiply_add(a, detail::erf_tail(a * a), a);
    const T large = T(1) - detail::erfc_tail_short(between(a, 1.0, 6.0));
    return copysign(pick(a <= T(1), small, large), x);
  }
}

// erf to 1.2 units in the last place of a float, at half the cost.
template <class T>
FACULA_SCALAR T erf_coarse(T x) {
  const T a = abs(x), bounded = at_most(a, 3.93f);
  const T small = a + a * detail::erf_tail(a * a), large = T(1) - detail::erfc_unit(bounded);
  return copysign(pick(a <= T(1), small, large), x);
}

// The normal distribution function, as precise as its own sum with 1.
template <class T>
FACULA_SCALAR T normal_below(T x) {
  const T u = x * lane_t<T>(0.7071067811865476);
  if constexpr (of_floats<T>) {
    const T a = abs(u), half = 0.5f, bounded = at_most(a, 3.93f);
    const T small = half * (u * detail::erf_tail(u * u) + u) + half;
    const T tail = pick(a > T(3.92f), T(0), half * detail::erfc_unit(bounded));
    return pick(a <= T(1), small, pick(x < T(0), tail, T(1) - tail));
  } else {
    return T(0.5) * (T(1) + erf(u));
  }
}

template <class T>
FACULA_SCALAR T erfc(T x) {
  if constexpr (of_floats<T>) {
    return by_doubles(x,
                      [](auto v) __attribute__((always_inline)) { return detail::erfc_short(v); });
  } else {
    const T a = abs(x);
    const auto near = a < T(0.5);
    const T tail = detail::erfc_tail(pick(near, T(0.5), a));
    const T mirrored = pick(x < T(0), T(2) - tail, tail);
    const T small = pick(near, x, T(0.5)), part = small * detail::erf_tail(small * small);
    const auto less = detail::fast_two_sum(T(1), -small);
    return pick(near, less.hi - (part - less.lo), mirrored);
  }
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
