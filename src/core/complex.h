// Complex numbers with C99 layout and the plain textbook product: std::complex calls a library
// routine per product unless -ffast-math is on, and its operators do not vectorise.
#pragma once
#include <cmath>
#include <complex>
#include <type_traits>

namespace facula {

template <class T>
struct alignas(2 * sizeof(T)) Complex {
  T re, im;
  using value_type = T;

  Complex() = default;
  template <class U, std::enable_if_t<std::is_arithmetic_v<U>, int> = 0>
  constexpr Complex(U r) : re(static_cast<T>(r)), im(0) {}
  constexpr Complex(T r, T i) : re(r), im(i) {}
  template <class U>
  constexpr Complex(const Complex<U>& o) : re(static_cast<T>(o.re)), im(static_cast<T>(o.im)) {}
  constexpr Complex(const std::complex<T>& o) : re(o.real()), im(o.imag()) {}
  operator std::complex<T>() const { return {re, im}; }

  constexpr T real() const { return re; }
  constexpr T imag() const { return im; }

  constexpr Complex& operator+=(const Complex& o) { return *this = *this + o; }
  constexpr Complex& operator-=(const Complex& o) { return *this = *this - o; }
  constexpr Complex& operator*=(const Complex& o) { return *this = *this * o; }
  Complex& operator/=(const Complex& o) { return *this = *this / o; }

  friend constexpr Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend constexpr Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // Smith's method: scales by the larger component so that the squares cannot overflow.
  friend Complex operator/(Complex a, Complex b) {
    if (std::abs(b.re) >= std::abs(b.im)) {
      if (b.re == T(0) && b.im == T(0)) return {a.re / std::abs(b.re), a.im / std::abs(b.im)};
      const T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
      return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im, scale = T(1) / (b.re * ratio + b.im);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
  }
  friend constexpr bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
};

template <class T>
constexpr Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}
template <class T>
T abs(Complex<T> z) {
  return std::hypot(z.re, z.im);
}
template <class T>
T arg(Complex<T> z) {
  return std::atan2(z.im, z.re);
}

using complex64 = Complex<float>;
using complex128 = Complex<double>;

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<Complex<T>> = true;

}  // namespace facula
