// Building blocks of the scalar functions: bit access, rounding, polynomials, exact sums and
// products.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/scalar/config.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

template <class T>
struct Ieee;
template <>
struct Ieee<float> {
  using Bits = uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr float round_magic =
      0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  static constexpr float bias = 127;
  static constexpr float tiny_scale = 0x1p25f;
  static constexpr float tiny_exponent = 25;
};
template <>
struct Ieee<double> {
  using Bits = uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr double round_magic = 0x1.8p52;
  static constexpr double bias = 1023;
  static constexpr double tiny_scale = 0x1p54;
  static constexpr double tiny_exponent = 54;
};

template <class T>
using Bits = typename Ieee<T>::Bits;
template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T quiet_nan = std::numeric_limits<T>::quiet_NaN();

template <class T>
  requires std::is_floating_point_v<T>
FACULA_SCALAR Bits<T> to_bits(T x) {
  return std::bit_cast<Bits<T>>(x);
}
template <class T>
  requires std::is_floating_point_v<T>
FACULA_SCALAR T from_bits(Bits<T> b) {
  return std::bit_cast<T>(b);
}

// a * b + c, fused where the instruction set has it: one rounding less and half the work.
template <class T>
  requires std::is_floating_point_v<T>
FACULA_SCALAR T multiply_add(T a, std::type_identity_t<T> b, std::type_identity_t<T> c) {
#if defined(__FMA__)
  if constexpr (std::is_same_v<T, float>)
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// c0 + x c1 + x^2 c2 + ...
template <class T, class C>
FACULA_SCALAR T poly(T, C c0) {
  return static_cast<T>(c0);
}
template <class T, class C0, class C1, class... C>
FACULA_SCALAR T poly(T x, C0 c0, C1 c1, C... rest) {
  return multiply_add(x, poly(x, c1, rest...), static_cast<T>(c0));
}

// A value as an unevaluated sum; |lo| is at most half a unit in the last place of hi.
template <class T>
struct Pair {
  T hi, lo;
};

// The same from two polynomials in x^2, each half as long to wait for.
template <class T, class C0>
FACULA_SCALAR Pair<T> poly_halves(T, C0 c0) {
  return {static_cast<T>(c0), T(0)};
}
template <class T, class C0, class C1>
FACULA_SCALAR Pair<T> poly_halves(T, C0 c0, C1 c1) {
  return {static_cast<T>(c0), static_cast<T>(c1)};
}
template <class T, class C0, class C1, class C2, class... C>
FACULA_SCALAR Pair<T> poly_halves(T square, C0 c0, C1 c1, C2 c2, C... rest) {
  const Pair<T> p = poly_halves(square, c2, rest...);
  return {multiply_add(square, p.hi, static_cast<T>(c0)),
          multiply_add(square, p.lo, static_cast<T>(c1))};
}
template <class T, class... C>
FACULA_SCALAR T poly_by_halves(T x, C... c) {
  const Pair<T> p = poly_halves(x * x, c...);
  return multiply_add(x, p.lo, p.hi);
}

// The nearest integer to x, |x| < 2^22 (float) or 2^51 (double): cheaper than a rounding
// instruction where the integer's bits are wanted as well.
template <class T>
FACULA_SCALAR T round_small(T x) {
  return (x + Ieee<T>::round_magic) - Ieee<T>::round_magic;
}

// The low bits of integer k, as two's complement.
template <class T>
FACULA_SCALAR Bits<T> integer_bits(T k) {
  return to_bits(k + Ieee<T>::round_magic);
}

// 2^k for an integer k whose power is normal.
template <class T>
FACULA_SCALAR T power_of_two(T k) {
  return from_bits<T>(integer_bits(k + Ieee<T>::bias) << Ieee<T>::mantissa_bits);
}

// y 2^k with one rounding, also when the result is subnormal: the first factor cannot underflow.
template <class T>
FACULA_SCALAR T scale(T y, T k) {
  const T half = round_small(k * T(0.5));
  return y * power_of_two(half) * power_of_two(k - half);
}

template <class T>
FACULA_SCALAR Pair<T> fast_two_sum(T a, T b) {  // exact for |a| >= |b| or a == 0
  const T s = a + b;
  return {s, b - (s - a)};
}

template <class T>
FACULA_SCALAR Pair<T> two_sum(T a, T b) {
  const T s = a + b, bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

// The upper half of the significand, by masking: unlike Veltkamp's split it cannot overflow.
FACULA_SCALAR double upper_half(double x) {
  return from_bits<double>(to_bits(x) & ~uint64_t{0x7ffffff});
}

// a * b + c with one rounding (double without fma: with little more) on every instruction set.
template <class T>
  requires std::is_floating_point_v<T>
FACULA_SCALAR T fma(T a, std::type_identity_t<T> b, std::type_identity_t<T> c) {
#if defined(__FMA__)
  return multiply_add(a, b, c);
#else
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(static_cast<double>(a) * b + c);
  } else {
    const double p = a * b, ah = upper_half(a), al = a - ah, bh = upper_half(b), bl = b - bh;
    const Pair<double> s = two_sum(p, c);
    return s.hi + (s.lo + (((ah * bh - p) + ah * bl + al * bh) + al * bl));
  }
#endif
}

// The exact product, as long as it neither overflows nor leaves its low part subnormal.
template <class T>
FACULA_SCALAR Pair<T> two_prod(T a, std::type_identity_t<T> b) {
  const T p = a * b;
#if defined(__FMA__)
  return {p, multiply_add(a, b, -p)};
#else
  return {p, fma(a, b, -p)};
#endif
}

}  // namespace detail

template <class T>
FACULA_SCALAR T abs(T x) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_fabsf(x);
  else
    return __builtin_fabs(x);
}
template <class T>
FACULA_SCALAR T floor(T x) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_floorf(x);
  else
    return __builtin_floor(x);
}
template <class T>
FACULA_SCALAR T ceil(T x) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_ceilf(x);
  else
    return __builtin_ceil(x);
}
template <class T>
FACULA_SCALAR T trunc(T x) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_truncf(x);
  else
    return __builtin_trunc(x);
}
// The nearest integer, ties to even.
template <class T>
FACULA_SCALAR T round(T x) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_rintf(x);
  else
    return __builtin_rint(x);
}
template <class T>
FACULA_SCALAR T sqrt(T x) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_sqrtf(x);
  else
    return __builtin_sqrt(x);
}
template <class T>
FACULA_SCALAR T rsqrt(T x) {
  return T(1) / sqrt(x);
}
template <class T>
FACULA_SCALAR T copysign(T magnitude, T sign) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_copysignf(magnitude, sign);
  else
    return __builtin_copysign(magnitude, sign);
}
template <class T>
FACULA_SCALAR bool signbit(T x) {
  return (detail::to_bits(x) >> (8 * sizeof(T) - 1)) != 0;
}
template <class T>
FACULA_SCALAR bool is_nan(T x) {
  return x != x;
}
template <class T>
FACULA_SCALAR bool is_inf(T x) {
  return abs(x) == detail::infinity<T>;
}
template <class T>
FACULA_SCALAR bool is_finite(T x) {
  return abs(x) < detail::infinity<T>;
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
