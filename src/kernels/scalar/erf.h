// erf and erfc. Bounds (units in the last place): erf 1.2, erfc 1.0; floats 0.7, erf_coarse 1.2.
#pragma once
#include "kernels/scalar/exp.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// e^(x^2) erfc(x) for 0.5 <= x <= 28: (1 + 2 x) times it is smooth in (x - 3.75) / (x + 3.75).
// The low part carries the rounding of the last addition and of the denominator.
FACULA_SCALAR Pair<double> erfcx_middle(double x) {
  const double t = (x - 3.75) / (x + 3.75);
  const auto g = fast_two_sum(
      1.2375126308378275,
      t * poly_by_halves(t, -0.1402405985855468, 0.0035854154854671285, 0.08227673849012247,
                         -0.10880393014192978, 0.09230432116129178, -0.05869339858491565,
                         0.02836227740236346, -0.009746579621163976, 0.0017556260165495481,
                         0.0002937141582128828, -0.0002901550435675096, 5.1646699212080365e-05,
                         2.238777731691058e-05, -1.1436614838494472e-05, -9.817705904751405e-07,
                         1.7363567832819818e-06, -4.545157845707177e-08, -2.391686922351359e-07,
                         1.3595507759689386e-08, 2.4179517903334086e-08));
  const auto den = two_sum(1.0, 2.0 * x);
  const double inverse = 1.0 / den.hi, q = g.hi / den.hi;
  const auto back = two_prod(q, den.hi);
  constexpr double first_rest = 1.0546160249725448e-16;  // of the first coefficient
  const double rest = ((g.hi - back.hi) - back.lo) + (g.lo + first_rest - q * den.lo);
  return {q, rest * inverse};
}

// The same to 2^-31 for 0.5 <= x <= 10.3.
FACULA_SCALAR double erfcx_short(double x) {
  const double t = (x - 3.0) / (x + 3.0);
  const double g =
      poly(t, 1.2530080588172146, -0.13562110320287565, -0.04756237990456925, 0.12964499320556852,
           -0.11927154713300137, 0.06831104416433098, -0.023788819320975936, 0.002505106067201687,
           0.00195334230089077, -0.0006908556844459078, -0.0001840121136907837);
  return g / (1.0 + 2.0 * x);
}

// erf(x) / x - 1 for |x| <= 1, z = x^2.
FACULA_SCALAR double erf_tail(double z) {
  return 0x1.06eba8214db69p-3 +
         z * poly(z, -0.37612638903183754, 0.11283791670955122, -0.026866170645130045,
                  0.005223977625425292, -0.0008548327022056039, 0.0001205533290773902,
                  -1.492564769980577e-05, 1.6462047941013092e-06, -1.6364674872443236e-07,
                  1.4792692242202154e-08, -1.2166239207887384e-09, 8.714711234339508e-11,
                  -4.239433624031963e-12);
}
FACULA_SCALAR double erf_small(double x) { return x + x * erf_tail(x * x); }

// erf for |x| <= 3.93, for a float result.
FACULA_SCALAR double erf_short(double x) {
  return x * poly(x * x - 7.75, 0.35918096697234647, -0.023141603900809406, 0.002223832256275587,
                  -0.00023389897839290943, 2.510088966180181e-05, -2.652792478173322e-06,
                  2.7031566946552233e-07, -2.6257473686767167e-08, 2.3895151972276165e-09,
                  -1.994678636561379e-10, 1.6276550846831813e-11, -1.3977500846322719e-12,
                  9.362145813455723e-14, -3.068548239019097e-15, 2.5036139765866585e-16,
                  -4.594142679934748e-17, 2.338195426336288e-18);
}

// In float alone, for results that keep fewer bits: 1 + erf(x), and 1 - erf of a large argument.
// erf(x) = x + x erf_unit(x^2) for |x| <= 1; erfc(x) = erfc_unit(x) for 1 <= x <= 3.93.
FACULA_SCALAR float erf_unit(float z) {
  return poly(z, 0.12837917f, -0.3761263f, 0.11283625f, -0.026855664f, 0.005192211f, -0.0008047565f,
              7.9882396e-05f);
}
FACULA_SCALAR float erfc_unit(float x) {
  const float p = poly(x, -0.00035066312f, -1.6266122f, -0.919726799f, -0.149535015f, 0.0318721980f,
                       -0.00434200559f, 0.000277774758f);  // its logarithm to base 2
  const float k = round_small(p);
  return power_of_two(k) * poly(p - k, 1.0f, 0.69314718f, 0.24022651f, 0.055503596f, 0.0096180625f,
                                0.0013390985f, 0.00015462880f);
}

// erfc for x >= 0.5, as e^(-x^2) with the square's rounding carried along, times erfcx.
FACULA_SCALAR double erfc_tail(double x) {
  const double bounded = x > 28.0 ? 28.0 : x;
  const auto square = two_prod(bounded, bounded);
  const auto p = exp_argument(-square.hi, -square.lo);
  const auto e = exp_sum(1.0, p.r, p.lost), g = erfcx_middle(bounded);
  const auto product = two_prod(e.hi, g.hi);
  return scale_bits(product.hi + (product.lo + (e.lo * g.hi + e.hi * g.lo)), p.bits);
}

// erfc for a float result.
FACULA_SCALAR double erfc_short(double x) {
  const double a = abs(x), safe = a < 0.5 ? 0.5 : a, bounded = safe > 10.3 ? 10.3 : safe;
  const double tail = exp_short(-bounded * bounded) * erfcx_short(bounded);
  const double mirrored = x < 0.0 ? 2.0 - tail : tail;
  return a < 0.5 ? 1.0 - erf_short(x) : mirrored;
}

}  // namespace detail

template <class T>
FACULA_SCALAR T erf(T x) {
  const T a = abs(x);
  if constexpr (std::is_same_v<T, float>) {
    const float y = static_cast<float>(detail::erf_short(a > 3.93f ? 3.93f : a));
    return is_nan(x) ? x : copysign(a > 3.92f ? 1.0f : y, x);
  } else {
    const double bounded = a > 6.0 ? 6.0 : a;
    const double large = 1.0 - detail::erfc_tail(bounded < 0.5 ? 0.5 : bounded);
    return copysign(a <= 1.0 ? detail::erf_small(a) : large, x);
  }
}

// erf to 1.2 units in the last place of a float, at half the cost.
FACULA_SCALAR float erf_coarse(float x) {
  const float a = abs(x), bounded = a > 3.93f ? 3.93f : a;
  const float small = a + a * detail::erf_unit(a * a), large = 1.0f - detail::erfc_unit(bounded);
  return is_nan(x) ? x : copysign(a <= 1.0f ? small : large, x);
}

// The normal distribution function, as precise as its own sum with 1.
template <class T>
FACULA_SCALAR T normal_below(T x) {
  const T u = x * T(0.7071067811865476);
  if constexpr (std::is_same_v<T, float>) {
    const float a = abs(u), bounded = a > 3.93f ? 3.93f : a;
    const float small = 0.5f * (u * detail::erf_unit(u * u) + u) + 0.5f;
    const float tail = a > 3.92f ? 0.0f : 0.5f * detail::erfc_unit(bounded);
    return is_nan(x) ? x : a <= 1.0f ? small : (x < 0.0f ? tail : 1.0f - tail);
  } else {
    return T(0.5) * (T(1) + erf(u));
  }
}

template <class T>
FACULA_SCALAR T erfc(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(detail::erfc_short(x));
  } else {
    const double a = abs(x), safe = a < 0.5 ? 0.5 : a;
    const double tail = detail::erfc_tail(safe);
    const double mirrored = x < 0.0 ? 2.0 - tail : tail;
    const auto less = detail::fast_two_sum(1.0, -(a < 0.5 ? x : 0.5));
    return a < 0.5 ? less.hi - (x * detail::erf_tail(x * x) - less.lo) : mirrored;
  }
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
