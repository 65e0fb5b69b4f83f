// Division with a rest, powers, greatest common divisors and shifts: PyTorch's rules for floats and
// integers. Integer functions wrap and never trap; raising on a zero divisor is the caller's duty.
#pragma once
#include "kernels/scalar/numeric.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// Unsigned arithmetic of at least int's width: products of promoted small integers may overflow
// int.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
FACULA_SCALAR T wrapping_neg(T x) {
  return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x));
}

template <class T>
FACULA_SCALAR T magnitude(T x) {
  return x < T(0) ? wrapping_neg(x) : x;
}

FACULA_SCALAR_SLOW float fmod_library(float a, float b) { return __builtin_fmodf(a, b); }
FACULA_SCALAR_SLOW double fmod_library(double a, double b) { return __builtin_fmod(a, b); }

}  // namespace detail

// Whether fmod_fast(a, b) may be called: the quotient's integer part is exact in double.
FACULA_SCALAR bool fmod_in_fast_range(float a, float b) {
  return (abs(a) < abs(b) * 0x1p28f) & (abs(b) < 0x1p99f);
}
FACULA_SCALAR float fmod_fast(float a, float b) {
  const double m = abs(static_cast<double>(a)), d = abs(static_cast<double>(b));
  double r = m - trunc(m / d) * d;
  r = r < 0.0 ? r + d : (r >= d ? r - d : r);
  return copysign(static_cast<float>(r), a);
}

// The rest of floor division under the same condition.
FACULA_SCALAR float remainder_fast(float a, float b) {
  const float r = fmod_fast(a, b);
  return (r != 0.0f) & ((r < 0.0f) != (b < 0.0f)) ? r + b : r;
}

// a - trunc(a / b) b, exact; the sign of a.
template <class T>
FACULA_SCALAR T fmod(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>)
      return b == T(-1) ? T(0) : static_cast<T>(a % b);
    else
      return static_cast<T>(a % b);
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (fmod_in_fast_range(a, b)) [[likely]]
        return fmod_fast(a, b);
    }
    return detail::fmod_library(a, b);
  }
}

// The rest of floor division: the sign of b, as in Python.
template <class T>
FACULA_SCALAR T remainder(T a, T b) {
  const T r = fmod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? static_cast<T>(r + b) : r;
}

// a / b rounded towards zero.
template <class T>
FACULA_SCALAR T trunc_div(T a, T b) {
  if constexpr (!std::is_integral_v<T>)
    return trunc(a / b);
  else {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return detail::wrapping_neg(a);
    }
    return static_cast<T>(a / b);
  }
}

// a / b rounded down. For floats it agrees with remainder: the quotient of a less its rest is
// nearly an integer and is rounded to it.
template <class T>
FACULA_SCALAR T floor_div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T q = trunc_div(a, b);
    if (b == T(0) || !std::is_signed_v<T>) return q;
    return fmod(a, b) != T(0) && (a < T(0)) != (b < T(0)) ? static_cast<T>(q - 1) : q;
  } else {
    if (b == T(0)) return a / b;
    const T rest = fmod(a, b);
    T q = (a - rest) / b;
    if (rest != T(0) && (rest < T(0)) != (b < T(0))) q -= T(1);
    if (q == T(0)) return copysign(T(0), a / b);
    const T down = floor(q);
    return q - down > T(0.5) ? down + T(1) : down;
  }
}

// base^exponent, wrapping; for a negative exponent the reciprocal's integer part.
template <class T>
FACULA_SCALAR T int_pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < T(0)) {
      if (base == T(1)) return T(1);
      return base == T(-1) ? static_cast<T>(exponent & 1 ? -1 : 1) : T(0);
    }
  }
  using W = detail::Wrapping<T>;
  W result = 1, square = static_cast<W>(base);
  for (W e = static_cast<W>(exponent); e != 0; e >>= 1, square *= square) {
    if (e & 1) result *= square;
  }
  return static_cast<T>(result);
}

// Signed throughout, so that the smallest number, whose magnitude wraps to itself, gives PyTorch's
// sign.
template <class T>
FACULA_SCALAR T gcd(T a, T b) {
  T x = detail::magnitude(a), y = detail::magnitude(b);
  while (x != T(0)) {
    const T rest = fmod(y, x);
    y = x;
    x = rest;
  }
  return y;
}

// The product wraps; for types below int it is int's, cut after its sign has been dropped.
template <class T>
FACULA_SCALAR T lcm(T a, T b) {
  using Wide = std::conditional_t<(sizeof(T) < 4), int32_t, T>;
  using W = detail::Wrapping<T>;
  const T g = gcd(a, b);
  if (g == T(0)) return T(0);
  const Wide product = static_cast<Wide>(static_cast<W>(trunc_div(a, g)) * static_cast<W>(b));
  return static_cast<T>(detail::magnitude(product));
}

// a << b; zero when b is not a valid shift.
template <class T>
FACULA_SCALAR T lshift(T a, T b) {
  const bool valid = static_cast<std::make_unsigned_t<T>>(b) < 8 * sizeof(T);
  return valid ? static_cast<T>(static_cast<detail::Wrapping<T>>(a) << b) : T(0);
}

// a >> b, arithmetic; when b is not a valid shift every bit becomes the sign's.
template <class T>
FACULA_SCALAR T rshift(T a, T b) {
  constexpr int most = 8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0);
  const bool valid = static_cast<std::make_unsigned_t<T>>(b) < most;
  if (valid) return static_cast<T>(a >> b);
  return a < T(0) ? static_cast<T>(-1) : T(0);
}

// sqrt(a^2 + b^2) without overflow; infinite when either argument is, even against nan. Bound:
// 0.51 units in the last place.
template <class T>
FACULA_SCALAR T hypot(T a, T b) {
  const T x = abs(a), y = abs(b);
  T r;
  if constexpr (std::is_same_v<T, float>) {
    const double u = x, v = y;
    r = static_cast<float>(sqrt(u * u + v * v));
  } else {
    const double high = x > y ? x : y, low = x > y ? y : x;
    const double factor = high > 0x1p500 ? 0x1p-600 : (high < 0x1p-450 ? 0x1p600 : 1.0);
    const double undo = high > 0x1p500 ? 0x1p600 : (high < 0x1p-450 ? 0x1p-600 : 1.0);
    const double u = high * factor, v = low * factor;
    const auto uu = detail::two_prod(u, u), vv = detail::two_prod(v, v);
    const auto s = detail::fast_two_sum(uu.hi, vv.hi);
    const double root = sqrt(s.hi);
    const double rest = detail::fma(-root, root, s.hi) + (s.lo + (uu.lo + vv.lo));
    r = (root > 0.0 ? root + rest / (2.0 * root) : root) * undo;
  }
  return is_inf(a) || is_inf(b) ? detail::infinity<T> : r;
}

// The number next to a in the direction of b.
template <class T>
FACULA_SCALAR T nextafter(T a, T b) {
  if (is_nan(a) || is_nan(b)) return a + b;
  if (a == b) return b;
  if (a == T(0)) return copysign(detail::from_bits<T>(1), b);
  const auto bits = detail::to_bits(a);
  return detail::from_bits<T>((a < b) == (a > T(0)) ? bits + 1 : bits - 1);
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
