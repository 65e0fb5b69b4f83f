// exp and what is built on it alone: exp2, expm1, sigmoid, sinh, cosh, tanh.
// Bounds (units in the last place): exp, exp2, expm1 1.1; sinh, cosh 1.6;
// tanh 1.5; sigmoid 2.0.
#pragma once
#include "kernels/scalar/numeric.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// e^x = 2^k (1 + r + q): |r| <= ln(2)/2, and q gathers what is small.
template <class T>
struct ExpParts {
  T k, r, q;
};

template <class T>
FACULA_SCALAR T exp_tail(T r) {  // (e^r - 1 - r) / r^2
  if constexpr (std::is_same_v<T, float>) {
    return poly(r, 0.5f, 0.16666667f, 0.041666273f, 0.008333261f, 0.0013946054f, 0.00019920654f);
  } else {
    return poly(r, 0.5, 0.16666666666666666, 0.04166666666666671, 0.008333333333333342,
                0.001388888888886462, 0.0001984126984123239, 2.4801587362514585e-05,
                2.7557319297108277e-06, 2.755724233556809e-07, 2.5052033963450835e-08,
                2.0924318804748803e-09, 1.609700102675714e-10);
  }
}

// Beyond these the result is 0 or infinity in any rounding; the range keeps k small.
template <class T>
FACULA_SCALAR T clamp_exponent(T x) {
  constexpr T low = std::is_same_v<T, float> ? T(-104) : T(-746);
  constexpr T high = std::is_same_v<T, float> ? T(89) : T(710);
  const T bounded = x < low ? low : x;
  return bounded > high ? high : bounded;
}

// The parts of e^(x + lo), lo far smaller than x; x clamped.
template <class T>
FACULA_SCALAR ExpParts<T> exp_parts(T x, T lo = T(0)) {
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T ln2_hi = is_float ? T(0x1.62e3p-1) : T(0x1.62e42fee00000p-1);
  constexpr T ln2_lo = is_float ? T(0x1.2fefa39ef3579p-17) : T(0x1.a39ef35793c76p-33);
  const T k = round_small(x * T(1.4426950408889634));
  const T hi = x - k * ln2_hi, tail = k * ln2_lo - lo, r = hi - tail;
  return {k, r, ((hi - r) - tail) + r * r * exp_tail(r)};
}

template <class T>
FACULA_SCALAR T exp_value(const ExpParts<T>& p) {
  return scale(T(1) + (p.r + p.q), p.k);
}

// e^x - 1 = 2^k (hi + lo); x clamped.
template <class T>
FACULA_SCALAR Pair<T> expm1_pair(const ExpParts<T>& p) {
  const T one = T(1) - power_of_two(p.k > T(100) ? T(-100) : -p.k);
  const Pair<T> s = fast_two_sum(one, p.r);
  return fast_two_sum(s.hi, s.lo + p.q);
}

// The same in double for a float result: the shorter polynomial is good to 2^-34.
FACULA_SCALAR double exp_short(double x) {
  const double k = round_small(x * 1.4426950408889634), r = x - k * 0x1.62e42fefa39efp-1;
  const double q = poly(r, 0.5000000076869616, 0.166666668734167, 0.04166627135105789,
                        0.008333260788835683, 0.0013946054070753363, 0.00019920653776047108);
  return (1.0 + (r + r * r * q)) * power_of_two(k);
}

// What e^x is made of with fma, x clamped: x = k ln(2) + r + lost, and the bits of integer k.
template <class T>
struct FusedParts {
  T r, lost;
  Bits<T> k;
};
template <class T>
FACULA_SCALAR FusedParts<T> fused_parts(T x) {
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T ln2 = is_float ? T(0x1.62e43p-1) : T(0x1.62e42fefa39efp-1);
  constexpr T ln2_rest = is_float ? T(-0x1.05c610ca86c39p-29) : T(0x1.abc9e3b39803fp-56);
  constexpr T magic = Ieee<T>::round_magic;
  const T shifted = multiply_add(x, T(1.4426950408889634), magic), k = shifted - magic;
  const T wide = multiply_add(k, -ln2, x), r = multiply_add(k, -ln2_rest, wide);
  return {r, multiply_add(k, -ln2_rest, wide - r), to_bits(shifted) - to_bits(magic)};
}

// e^x with fma: the reduced argument is one product less, and 2^k is made from the bits that hold
// k. In two steps, so that subnormal results round once. x clamped.
template <class T>
FACULA_SCALAR T exp_fused(T x) {
  constexpr int mantissa = Ieee<T>::mantissa_bits;
  constexpr auto bias = static_cast<Bits<T>>(Ieee<T>::bias);
  const FusedParts<T> p = fused_parts(x);
  const T y = T(1) + (p.r + multiply_add(p.r * p.r, exp_tail(p.r), p.lost));
  const auto n = static_cast<std::make_signed_t<Bits<T>>>(p.k);
  const auto half = static_cast<Bits<T>>(n >> 1), rest = p.k - half;
  return y * from_bits<T>((half + bias) << mantissa) * from_bits<T>((rest + bias) << mantissa);
}

// 1 / (1 + e^-x) with fma. Numerator and denominator are scaled alike, so that 2^k is one normal
// power wherever it counts, even where the result is subnormal.
template <class T>
FACULA_SCALAR T sigmoid_fused(T x) {
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T low = is_float ? T(-60) : T(-600), high = is_float ? T(105) : T(750);
  constexpr T unit = is_float ? T(0x1p-30) : T(0x1p-70);
  constexpr auto bias = static_cast<Bits<T>>(Ieee<T>::bias) - (is_float ? 30 : 70);
  const T bounded = -x < low ? low : -x;
  const FusedParts<T> p = fused_parts(bounded > high ? high : bounded);
  const T y = T(1) + multiply_add(p.r * p.r, exp_tail(p.r), p.r);
  const T power = from_bits<T>((p.k + bias) << Ieee<T>::mantissa_bits);
  return unit / multiply_add(y, power, unit);
}

}  // namespace detail

// e^x.
template <class T>
FACULA_SCALAR T exp(T x) {
#if defined(__FMA__)
  return detail::exp_fused(detail::clamp_exponent(x));
#else
  return detail::exp_value(detail::exp_parts(detail::clamp_exponent(x)));
#endif
}

// 2^x.
template <class T>
FACULA_SCALAR T exp2(T x) {
  constexpr T low = std::is_same_v<T, float> ? T(-151) : T(-1076);
  constexpr T high = std::is_same_v<T, float> ? T(129) : T(1025);
  T bounded = x < low ? low : x;
  bounded = bounded > high ? high : bounded;
  if constexpr (std::is_same_v<T, float>) {
    // 2^k from the bits that hold k, in two steps, so that subnormal results round once.
    constexpr auto bias = static_cast<int32_t>(detail::Ieee<float>::bias);
    constexpr float magic = detail::Ieee<float>::round_magic;
    const float shifted = bounded + magic, f = bounded - (shifted - magic);
    const float y = detail::poly(f, 0.6931472f, 0.2402265f, 0.055504117f, 0.009618077f,
                                 0.0013332234f, 0.0001545406f, 1.5671478e-05f);
    const auto n = static_cast<int32_t>(detail::to_bits(shifted) - detail::to_bits(magic));
    const int32_t half = n >> 1, rest = n - half;
    const auto power = [](int32_t e) {
      return detail::from_bits<float>(static_cast<uint32_t>(e + bias) << 23);
    };
    return detail::multiply_add(f, y, 1.0f) * power(half) * power(rest);
  } else {
    const T k = detail::round_small(bounded), f = bounded - k;
    // f ln 2 as a sum: the leading part of the product is exact.
    const double f_hi = detail::upper_half(f), f_lo = f - f_hi;
    const double hi = f_hi * 0x1.62e4p-1;
    const double lo = f_hi * 0x1.7f7d1cf79abcap-20 + f_lo * 0x1.62e42fefa39efp-1;
    const double r = hi + lo, tail = (hi - r) + lo;
    return detail::scale(1.0 + (r + (tail + r * r * detail::exp_tail(r))), k);
  }
}

// e^x - 1, accurate near zero.
template <class T>
FACULA_SCALAR T expm1(T x) {
  const T bounded = detail::clamp_exponent(x < T(-40) ? T(-40) : x);
  const auto parts = detail::exp_parts(bounded);
  const T y = detail::scale(detail::expm1_pair(parts).hi, parts.k);
  return x == T(0) ? x : y;
}

// 1 / (1 + e^-x), without overflow on either side.
template <class T>
FACULA_SCALAR T sigmoid(T x) {
#if defined(__FMA__)
  return detail::sigmoid_fused(x);
#else
  const T e = exp(-abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
#endif
}

template <class T>
FACULA_SCALAR T tanh(T x) {
  constexpr T flat = std::is_same_v<T, float> ? T(10) : T(20);  // beyond it the result is one
  const T twice = T(2) * abs(x), bounded = twice > 2 * flat ? 2 * flat : twice;
  const auto parts = detail::exp_parts(-bounded);
  const auto pair = detail::expm1_pair(parts);
  const T unit = detail::power_of_two(parts.k), t = pair.hi * unit;
  const auto sum = detail::fast_two_sum(T(2), t);
  const T q = t / sum.hi;
  // First-order correction; 1 / (2 + t) is needed to few bits only.
  const T inverse = T(1.457) - T(0.5) * sum.hi;
  const T y = -(q + (pair.lo * unit * (T(1) - q) - q * sum.lo) * inverse);
  return x == T(0) ? x : copysign(y, x);
}

template <class T>
FACULA_SCALAR T sinh(T x) {
  constexpr T limit = std::is_same_v<T, float> ? T(90) : T(711);
  const T a = abs(x), bounded = a > limit ? limit : a;
  const auto parts = detail::exp_parts(bounded);
  const auto pair = detail::expm1_pair(parts);
  // h = (e^a - 1) / 2, so that the result overflows only where it must; sinh a = h + h / (1 + 2 h),
  // each with what its rounding left. Past 20 the second term is 1/2.
  const T h = detail::scale(pair.hi, parts.k - T(1));
  const T h_lo = pair.lo * detail::power_of_two((parts.k > T(100) ? T(100) : parts.k) - T(1));
  const auto den = detail::fast_two_sum(T(1), T(2) * (a > T(20) ? T(1) : h));
  const T inverse = T(1) / den.hi, second = h / den.hi;
  const T rest = h_lo * (T(1) + inverse * inverse) - second * den.lo * inverse;
  const T y = h + (a > T(20) ? T(0.5) : second + rest);
  return x == T(0) ? x : copysign(y, x);
}

template <class T>
FACULA_SCALAR T cosh(T x) {
  constexpr T limit = std::is_same_v<T, float> ? T(90) : T(711);
  const T a = abs(x), bounded = a > limit ? limit : a;
  const auto parts = detail::exp_parts(bounded);
  const T half = detail::scale(T(1) + (parts.r + parts.q), parts.k - T(1));
  return half + T(0.25) / half;
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
