// erf and erfc. Bounds (units in the last place): erf 0.95, erfc 1.3; of floats erf 0.7, erfc 0.8
// (subnormal results 0.9), erf_coarse 1.2.
#pragma once
#include <iterator>

#include "kernels/scalar/erf_table.h"
#include "kernels/scalar/erfc_table.h"
#include "kernels/scalar/exp.h"
#include "kernels/scalar/table.h"

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

// 2^(j / 16), with what rounding left: by itself, where ExpTable has it as a part of the power.
template <class L>
struct PowerTable;
template <>
struct PowerTable<float> {
  static constexpr const auto& power = ExpTable<float>::power;
  alignas(64) static constexpr float rest[] = {0.0f,
                                               0x1.9f3122p-25f,
                                               -0x1.c15742p-27f,
                                               0x1.ceac48p-25f,
                                               0x1.4636e2p-25f,
                                               0x1.824684p-25f,
                                               -0x1.593abcp-25f,
                                               -0x1.5bd5ecp-27f,
                                               0x1.9fcef4p-26f,
                                               -0x1.829fdp-25f,
                                               0x1.15506ep-27f,
                                               0x1.51f848p-27f,
                                               -0x1.a94b14p-26f,
                                               -0x1.3d56b2p-27f,
                                               -0x1.822dbcp-27f,
                                               0x1.52486cp-27f};
};
template <>
struct PowerTable<double> {
  static constexpr const auto& power = ExpTable<double>::power;
  alignas(64) static constexpr double rest[] = {0.0,
                                                0x1.8a62e4adc610bp-54,
                                                -0x1.19041b9d78a76p-55,
                                                0x1.9b07eb6c70573p-54,
                                                0x1.6f46ad23182e4p-55,
                                                0x1.ada0911f09ebcp-55,
                                                0x1.d4397afec42e2p-56,
                                                0x1.6324c054647adp-54,
                                                -0x1.bdd3413b26456p-54,
                                                -0x1.41577ee04992fp-55,
                                                0x1.6e9f156864b27p-54,
                                                0x1.c7c46b071f2bep-56,
                                                0x1.7a1cd345dcc81p-54,
                                                0x1.11065895048ddp-55,
                                                0x1.2ed02d75b3707p-55,
                                                -0x1.e9c23179c2893p-54};
};

// e^x = 2^floor(k) power (1 + small): |small| < 0.022 has no need of a low part.
template <class T>
struct TableExp {
  T power, power_rest, small, k;
  Bits<T> bits;
};
// Of x + lo, lo far smaller than x <= 0; results down to 2^-2000.
template <class T>
FACULA_SCALAR TableExp<T> exp_by_table(T x, std::type_identity_t<T> lo) {
  using L = lane_t<T>;
  using Table = PowerTable<L>;
  constexpr bool is_float = of_floats<T>;
  constexpr L step = is_float ? L(0x1.62e43p-5) : L(0x1.62e42fefa39efp-5);
  constexpr L step_rest = is_float ? L(-0x1.05c61p-33) : L(0x1.abc9e3b39803fp-60);
  constexpr L magic = Ieee<L>::round_magic;
  const T shifted = multiply_add(x, L(23.083120654223414), magic), k = shifted - T(magic);
  const T r = multiply_add(k, -step_rest, fma(k, -step, x)) + lo;
  T curve;
  if constexpr (is_float)
    curve = poly(r, 0.50001623f, 0.166670246f);
  else
    curve = poly(r, 0.5000000000000006, 0.16666666664407767, 0.04166666665964251,
                 0.008333472226544177, 0.0013889129208719687);
  const auto j = to_bits(shifted);
  // Negative integers are shifted right as positive ones.
  const auto whole = (j - to_bits(T(magic - L(16 * 2048)))) >> 4;
  return {entry_of(Table::power, j), entry_of(Table::rest, j), multiply_add(r * r, curve, r),
          k * L(0.0625), whole - Bits<T>(2048)};
}

template <class T>
FACULA_SCALAR ExpArgument<T> exponent_of(const TableExp<T>& e) {
  return {e.small, e.small, e.k, e.bits};
}

// e^(x^2) erfc(x) = (curve + curve_lo) * inverse * (1 + left), by one quotient.
template <class T>
struct ErfcxParts {
  T curve, curve_lo, inverse, left;
};
template <class T>
FACULA_SCALAR ErfcxParts<T> erfcx_parts(T x) {
  using L = lane_t<T>;
  constexpr bool is_float = of_floats<T>;
  constexpr L middle = is_float ? L(1.4892578125) : L(3.75);
  constexpr L first = is_float ? L(1.2864606380462646) : L(erfcx_first);
  const T low = x + T(middle), high = multiply_add(x, L(2), L(1));
  const T both = T(1) / (low * high), inverse = both * low, outer = both * high;
  // (x - middle) / (x + middle), to which a small x is sensitive.
  const T low_lo = x - (low - T(middle));
  const T outer_lo = multiply_add(-outer, low_lo, fma(-outer, low, T(1))) * outer;
  const T t = multiply_add(outer_lo, L(-2) * middle, multiply_add(outer, L(-2) * middle, T(1)));
  T rest;
  if constexpr (is_float)
    rest = poly_by_halves(t, -0.0322490099f, -0.239075955f, 0.112078681f, 0.0225624861f,
                          -0.0175491897f, -0.00779915774f, 0.00159744318f, 0.00260767293f,
                          0.000472004976f, -0.000725496076f);
  else
    rest = erfcx_rest(t);
  const T curve = multiply_add(t, rest, first);
  T curve_lo = fma(t, rest, T(first) - curve);
  if constexpr (!is_float) curve_lo = curve_lo + T(1.0546160249725448e-16);
  const T high_lo = fma(x, L(2), T(1) - high);
  return {curve, curve_lo, inverse, multiply_add(-inverse, high_lo, fma(-inverse, high, T(1)))};
}

// erfc for x >= 0.5, as e^(-x^2) with the square's rounding carried along, times erfcx.
template <class T>
FACULA_SCALAR T erfc_tail(T x) {
  constexpr bool is_float = of_floats<T>;
  const T bounded = at_most(x, is_float ? 10.3f : 28.0);
  const auto square = two_prod(bounded, bounded);
  const auto e = exp_by_table(-square.hi, -square.lo);
  const auto g = erfcx_parts(bounded);
  const T factor = e.power * g.inverse, y = factor * g.curve;
  const T factor_lo = multiply_add(e.power_rest, g.inverse, fma(e.power, g.inverse, -factor));
  const T y_lo =
      multiply_add(factor_lo, g.curve, multiply_add(factor, g.curve_lo, fma(factor, g.curve, -y)));
  return scaled(y + multiply_add(y, e.small + g.left, y_lo), exponent_of(e));
}

// slope[k] + t (slope[k + 1] + ...) of a table's entry.
template <class Table, int k = 0, class T>
FACULA_SCALAR T slope_of(Bits<T> index, T t) {
  if constexpr (k + 1 == std::size(Table::slope)) {
    return entry_of(Table::slope[k], index);
  } else {
    // Look-ups stand beside what they are for: all of them first would want every register.
    const T rest = slope_of<Table, k + 1>(index, t);
    return multiply_add(t, rest, entry_of(Table::slope[k], index));
  }
}
// erf for 0 <= a.
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T erf_by_table(T a) {
  constexpr double magic = Ieee<T>::round_magic;
  const T bounded = at_most(a, 6.0);
  const T shifted = multiply_add(bounded - T(ErfTable::first), 1 / ErfTable::step, magic);
  const auto index = to_bits(shifted);
  const T t = bounded - entry_of(ErfTable::center, index);
  // Beside zero the slope is that of erf(x) - x.
  const T value =
      multiply_add(bounded, entry_of(ErfTable::unit, index), entry_of(ErfTable::value, index));
  return multiply_add(t, slope_of<ErfTable>(index, t), value);
}

// erfc as e^(-x^2) with the square's rounding carried along, times erfcx of a table: half the time
// of a quotient and its rests where a look-up is one instruction.
template <class T>
FACULA_SCALAR T erfc_by_table(T x) {
  using L = lane_t<T>;
  using Table = ErfcTable<L>;
  const T a = at_most(abs(x), Table::end);
  const auto index =
      to_bits(a + T(Table::offset)) >> (Ieee<L>::mantissa_bits - Table::significand_bits);
  const T value = entry_of(Table::value, index), t = a - entry_of(Table::center, index);
  const T beside = t * slope_of<Table>(index, t);
  const auto square = two_prod(a, a);
  const auto e = exp_by_table(-square.hi, -square.lo);
  const auto power = exponent_of(e);
  const T y = e.power * value, y_lo = multiply_add(e.power_rest, value, fma(e.power, value, -y));
  // The smallest first.
  const T low =
      multiply_add(y, beside, multiply_add(y, multiply_add(beside, e.small, e.small), y_lo));
  const T tail = scaled(y + low, power);
  return pick(x < T(0), T(2) - tail, tail);
}

// erfc by a polynomial beside zero and a quotient elsewhere: for loops that GCC makes vectors of,
// in which look-ups are gathers.
template <class T>
FACULA_SCALAR T erfc_by_quotient(T x) {
  using L = lane_t<T>;
  const T a = abs(x);
  const auto near = a < T(L(0.5));
  const T tail = erfc_tail(pick(near, T(L(0.5)), a));
  const T mirrored = pick(x < T(0), T(2) - tail, tail);
  const T small = pick(near, x, T(L(0.5))), part = small * erf_tail(small * small);
  const auto less = fast_two_sum(T(1), -small);
  return pick(near, less.hi - (part - less.lo), mirrored);
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
    return copysign(detail::erf_by_table(a), x);
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
#if defined(__AVX512F__)
  return detail::erfc_by_table(x);
#else
  return detail::erfc_by_quotient(x);
#endif
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
