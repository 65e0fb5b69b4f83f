// Scalar functions of complex numbers. The C library's special cases (C99 annex G) are PyTorch's,
// so the transcendental ones go to it; they are called as builtins, since templates of std::complex
// compiled for one instruction set could be linked into code for another.
#pragma once
#include "core/complex.h"
#include "kernels/scalar/math.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

template <class T>
FACULA_SCALAR auto to_c(Complex<T> z) {
  std::conditional_t<std::is_same_v<T, float>, __complex__ float, __complex__ double> c;
  __real__ c = z.re;
  __imag__ c = z.im;
  return c;
}
FACULA_SCALAR Complex<float> from_c(__complex__ float z) { return {__real__ z, __imag__ z}; }
FACULA_SCALAR Complex<double> from_c(__complex__ double z) { return {__real__ z, __imag__ z}; }

// Calls the library function of the width that z has.
template <class T, class Narrow, class Wide>
FACULA_SCALAR Complex<T> library(Complex<T> z, Narrow narrow, Wide wide) {
  if constexpr (std::is_same_v<T, float>)
    return from_c(narrow(to_c(z)));
  else
    return from_c(wide(to_c(z)));
}

}  // namespace detail

template <class T>
FACULA_SCALAR Complex<T> exp(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_cexpf(c); }, [](auto c) { return __builtin_cexp(c); });
}
template <class T>
FACULA_SCALAR Complex<T> log(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_clogf(c); }, [](auto c) { return __builtin_clog(c); });
}
template <class T>
FACULA_SCALAR Complex<T> log_by_parts(Complex<T> z) {
  return log(z);
}
template <class T>
FACULA_SCALAR Complex<T> sqrt(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_csqrtf(c); }, [](auto c) { return __builtin_csqrt(c); });
}
template <class T>
FACULA_SCALAR Complex<T> sin(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_csinf(c); }, [](auto c) { return __builtin_csin(c); });
}
template <class T>
FACULA_SCALAR Complex<T> cos(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_ccosf(c); }, [](auto c) { return __builtin_ccos(c); });
}
template <class T>
FACULA_SCALAR Complex<T> tan(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_ctanf(c); }, [](auto c) { return __builtin_ctan(c); });
}
template <class T>
FACULA_SCALAR Complex<T> sinh(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_csinhf(c); }, [](auto c) { return __builtin_csinh(c); });
}
template <class T>
FACULA_SCALAR Complex<T> cosh(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_ccoshf(c); }, [](auto c) { return __builtin_ccosh(c); });
}
template <class T>
FACULA_SCALAR Complex<T> tanh(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_ctanhf(c); }, [](auto c) { return __builtin_ctanh(c); });
}
template <class T>
FACULA_SCALAR Complex<T> asin(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_casinf(c); }, [](auto c) { return __builtin_casin(c); });
}
template <class T>
FACULA_SCALAR Complex<T> acos(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_cacosf(c); }, [](auto c) { return __builtin_cacos(c); });
}
template <class T>
FACULA_SCALAR Complex<T> atan(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_catanf(c); }, [](auto c) { return __builtin_catan(c); });
}
template <class T>
FACULA_SCALAR Complex<T> asinh(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_casinhf(c); }, [](auto c) { return __builtin_casinh(c); });
}
template <class T>
FACULA_SCALAR Complex<T> acosh(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_cacoshf(c); }, [](auto c) { return __builtin_cacosh(c); });
}
template <class T>
FACULA_SCALAR Complex<T> atanh(Complex<T> z) {
  return detail::library(
      z, [](auto c) { return __builtin_catanhf(c); }, [](auto c) { return __builtin_catanh(c); });
}

template <class T>
FACULA_SCALAR Complex<T> pow(Complex<T> x, Complex<T> y) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::from_c(__builtin_cpowf(detail::to_c(x), detail::to_c(y)));
  } else {
    return detail::from_c(__builtin_cpow(detail::to_c(x), detail::to_c(y)));
  }
}

template <class T>
FACULA_SCALAR T abs(Complex<T> z) {
  return hypot(z.re, z.im);
}

// The angle of z with the positive real axis.
template <class T>
FACULA_SCALAR T arg(Complex<T> z) {
  return atan2(z.im, z.re);
}

template <class T>
FACULA_SCALAR Complex<T> log2(Complex<T> z) {
  const auto l = log(z);
  return {l.re / T(0.6931471805599453), l.im / T(0.6931471805599453)};
}
template <class T>
FACULA_SCALAR Complex<T> log10(Complex<T> z) {
  const auto l = log(z);
  return {l.re / T(2.302585092994046), l.im / T(2.302585092994046)};
}

// log(1 + z): for small z, |1 + z|^2 - 1 is summed without the one.
template <class T>
FACULA_SCALAR Complex<T> log1p(Complex<T> z) {
  if (is_nan(z.re) || is_nan(z.im)) return {detail::quiet_nan<T>, detail::quiet_nan<T>};
  const T angle = atan2(z.im, z.re + T(1));
  if (!(math::abs(z) < T(0.5))) return {log(hypot(z.re + T(1), z.im)), angle};
  const T excess = z.re * (T(2) + z.re) + z.im * z.im;
  return {excess == T(0) ? z.re : T(0.5) * log1p(excess), angle};
}

// e^z - 1: the real part as expm1(x) cos(y) - 2 sin(y / 2)^2.
template <class T>
FACULA_SCALAR Complex<T> expm1(Complex<T> z) {
  const T half = sin(T(0.5) * z.im);
  return {expm1(z.re) * cos(z.im) - T(2) * half * half, exp(z.re) * sin(z.im)};
}

template <class T>
FACULA_SCALAR Complex<T> reciprocal(Complex<T> z) {
  return Complex<T>(T(1), T(0)) / z;
}
template <class T>
FACULA_SCALAR Complex<T> rsqrt(Complex<T> z) {
  return reciprocal(sqrt(z));
}
template <class T>
FACULA_SCALAR Complex<T> sigmoid(Complex<T> z) {
  const auto e = exp(Complex<T>(-z.re, -z.im));
  return reciprocal(Complex<T>(T(1) + e.re, e.im));
}

// sin(pi z) / (pi z), one at zero.
template <class T>
FACULA_SCALAR Complex<T> sinc(Complex<T> z) {
  if (z.re == T(0) && z.im == T(0)) return {T(1), T(0)};
  const Complex<T> p{T(3.14159265358979324) * z.re, T(3.14159265358979324) * z.im};
  return sin(p) / p;
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
