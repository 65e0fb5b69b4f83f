// Logarithms and what is built on them: log, log2, log10, log1p, softplus, logaddexp.
// Bounds (units in the last place): log, log1p 0.9; log2, log10 0.8; softplus 1.5.
#pragma once
#include "kernels/scalar/exp.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for positive finite x.
template <class T>
struct LogParts {
  T k, f;
};

template <class T>
FACULA_SCALAR LogParts<T> log_parts(T x) {
  using I = Ieee<T>;
  constexpr Bits<T> one = std::bit_cast<Bits<T>>(T(1));
  constexpr Bits<T> root = std::bit_cast<Bits<T>>(T(0.70710678118654752));
  constexpr Bits<T> mantissa = (Bits<T>{1} << I::mantissa_bits) - 1;
  const bool tiny = x < std::numeric_limits<T>::min();
  const Bits<T> b = to_bits(tiny ? x * I::tiny_scale : x) + (one - root);
  // The exponent as a number: it stands in the low bits of a value whose own exponent is known.
  const T biased =
      from_bits<T>((b >> I::mantissa_bits) | to_bits(T(Bits<T>{1} << I::mantissa_bits)));
  const T k = biased - (T(Bits<T>{1} << I::mantissa_bits) + I::bias);
  return {tiny ? k - I::tiny_exponent : k, from_bits<T>((b & mantissa) + root) - T(1)};
}

// (2 atanh(s) - 2 s) / s^3 with z = s^2.
template <class T>
FACULA_SCALAR T atanh_tail(T z) {
  if constexpr (std::is_same_v<T, float>) {
    return poly(z, 0.6666666564134591f, 0.4000033620802153f, 0.2853723899311438f,
                0.23583557034865546f);
  } else {
    return poly(z, 0.6666666666666666, 0.40000000000006286, 0.28571428569072765, 0.2222222264877897,
                0.1818177550644258, 0.15387097733262706, 0.13249960346957373, 0.13252768657154224);
  }
}

// The logarithm's value at arguments where the formula does not hold.
template <class T>
FACULA_SCALAR T log_special(T x, T y) {
  const T positive = x < infinity<T> ? y : x;
  return x > T(0) ? positive : (x == T(0) ? -infinity<T> : quiet_nan<T>);
}

// log(x) + correction, for positive finite x.
template <class T>
FACULA_SCALAR T log_core(T x, T correction) {
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T ln2_hi = is_float ? T(0x1.62e3p-1) : T(0x1.62e42fee00000p-1);
  constexpr T ln2_lo = is_float ? T(0x1.2fefa39ef3579p-17) : T(0x1.a39ef35793c76p-33);
  const auto [k, f] = log_parts(x);
  const T s = f / (T(2) + f), z = s * s, half_square = T(0.5) * f * f;
  const T tail = s * (half_square + z * atanh_tail(z)) + (k * ln2_lo + correction);
  return k * ln2_hi - ((half_square - tail) - f);
}

// log(1 + f) as an unevaluated sum whose upper part has 26 bits, so that products with it are
// exact.
FACULA_SCALAR Pair<double> log_pair(double f) {
  const double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
  const double hi = upper_half(f - half_square);
  return {hi, ((f - hi) - half_square) + s * (half_square + z * atanh_tail(z))};
}

// log(x) in double, good to 2^-37 of the result's size: enough for a float result.
FACULA_SCALAR double log_short(double x) {
  const auto [k, f] = log_parts(x);
  const double s = f / (2.0 + f), z = s * s;
  const double tail =
      poly(z, 0.6666666564134591, 0.4000033620802153, 0.2853723899311438, 0.23583557034865546);
  return k * 0x1.62e42fefa39efp-1 + (2.0 * s + s * z * tail);
}

// log(1 + x + lo) for x > -1, without a loss near zero.
template <class T>
FACULA_SCALAR T log1p_core(T x, T lo = T(0)) {
  const auto u = two_sum(T(1), x);
  return log_core(u.hi, (u.lo + lo) / u.hi);
}

}  // namespace detail

template <class T>
FACULA_SCALAR T log(T x) {
  return detail::log_special(x, detail::log_core(x, T(0)));
}

template <class T>
FACULA_SCALAR T log2(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::log_special(x, static_cast<float>(detail::log_short(x) * 1.4426950408889634));
  } else {
    const auto [k, f] = detail::log_parts(x);
    const auto l = detail::log_pair(f);
    const double lo = l.lo * 0x1.71547652b82fep+0 + l.hi * 0x1.4ae0bf85ddf44p-26;
    const auto sum = detail::fast_two_sum(k, l.hi * 0x1.7154760000000p+0);
    return detail::log_special(x, sum.hi + (sum.lo + lo));
  }
}

template <class T>
FACULA_SCALAR T log10(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::log_special(x, static_cast<float>(detail::log_short(x) * 0.4342944819032518));
  } else {
    const auto [k, f] = detail::log_parts(x);
    const auto l = detail::log_pair(f);
    const double lo =
        (l.lo * 0x1.bcb7b1526e50ep-2 + l.hi * 0x1.49b9438ca9aaep-28) + k * 0x1.fef311f12b358p-46;
    const auto sum = detail::fast_two_sum(k * 0x1.34413509f7800p-2, l.hi * 0x1.bcb7b10000000p-2);
    return detail::log_special(x, sum.hi + (sum.lo + lo));
  }
}

// log(1 + x), accurate near zero.
template <class T>
FACULA_SCALAR T log1p(T x) {
  const T y = detail::log_special(T(1) + x, detail::log1p_core(x));
  return x == T(0) ? x : y;
}

// log(1 + e^x) without overflow.
template <class T>
FACULA_SCALAR T softplus(T x) {
  const T e = exp(-abs(x));
  return (x > T(0) ? x : T(0)) + log1p(e);
}

// log(sigmoid(x)).
template <class T>
FACULA_SCALAR T log_sigmoid(T x) {
  return (x < T(0) ? x : T(0)) - log1p(exp(-abs(x)));
}

// log(e^a + e^b).
template <class T>
FACULA_SCALAR T logaddexp(T a, T b) {
  const T high = a > b ? a : b, y = high + log1p(exp(-abs(a - b)));
  return a == b && is_inf(a) ? a : (is_nan(a) || is_nan(b) ? a + b : y);
}

// log2(2^a + 2^b).
template <class T>
FACULA_SCALAR T logaddexp2(T a, T b) {
  const T high = a > b ? a : b, y = high + log1p(exp2(-abs(a - b))) * T(1.4426950408889634);
  return a == b && is_inf(a) ? a : (is_nan(a) || is_nan(b) ? a + b : y);
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
