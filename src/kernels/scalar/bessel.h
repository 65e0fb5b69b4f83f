// Bessel functions (J, Y, I, K of order 0 and 1), the spherical j0 and Airy's Ai, computed in
// double: float results are rounded nearly right. Bound for double, away from zeros: i0, i0e, i1
// and i1e 8 units in the last place.
#pragma once
#include <math.h>

#include "kernels/scalar/math.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

constexpr double euler_gamma = 0.5772156649015329, root_of_pi = 1.772453850905516;

// e^-|x| I_v(x), v = 0 or 1: the power series has positive terms only; beyond 30 the asymptotic
// one.
FACULA_SCALAR_SLOW double scaled_i(double x, int v) {
  const double a = abs(x);
  if (is_nan(x)) return x;
  if (v == 1 && x == 0.0) return 0.0;  // also for -0, as PyTorch
  if (a == infinity<double>) return v == 0 ? 0.0 : copysign(0.0, x);
  double sum = 1.0, term = 1.0;
  if (a <= 30.0) {
    for (int k = 1; term > 1e-17 * sum; ++k) {
      term *= 0.25 * a * a / (static_cast<double>(k) * (k + v));
      sum += term;
    }
    return exp(-a) * (v == 0 ? sum : 0.5 * x * sum);
  }
  for (int k = 1; k < 30 && abs(term) > 1e-17; ++k) {
    const double odd = 2.0 * k - 1.0;
    term *= (odd * odd - 4.0 * v) / (8.0 * k * a);
    sum += term;
  }
  return copysign(0.3989422804014327 * sum / sqrt(a), v == 0 ? 1.0 : x);
}

FACULA_SCALAR_SLOW double unscaled_i(double x, int v) {
  const double y = scaled_i(x, v), a = abs(x);
  if (is_inf(x)) return quiet_nan<double>;  // as PyTorch: infinity times zero
  if (a > 720.0) return copysign(infinity<double>, v == 0 ? 1.0 : x);
  return y * exp(0.5 * a) * exp(0.5 * a);
}

// K_v for 0 < x <= 2 by the power series with its logarithm.
FACULA_SCALAR_SLOW double small_k(double x, int v) {
  const double z = 0.25 * x * x, l = log(0.5 * x) + euler_gamma;
  if (v == 0) {
    double term = 1.0, harmonic = 0.0, sum = -l;
    for (int k = 1; k < 40; ++k) {
      term *= z / (static_cast<double>(k) * k);
      harmonic += 1.0 / k;
      sum += term * (harmonic - l);
    }
    return sum;
  }
  double term = 0.5 * x, harmonic = 0.0, sum = 1.0 / x + term * (l - 0.5);
  for (int k = 1; k < 40; ++k) {
    term *= z / (static_cast<double>(k) * (k + 1));
    harmonic += 1.0 / k;
    sum += term * (l - harmonic - 0.5 / (k + 1));
  }
  return sum;
}

// e^x K_v(x) for x > 2: the trapezoidal rule on the integral of e^(x - x cosh t) cosh(v t), which
// converges exponentially in the step.
FACULA_SCALAR_SLOW double scaled_large_k(double x, int v) {
  if (x == infinity<double>) return 0.0;
  const double h = 0.25 / sqrt(x < 4.0 ? 4.0 : x);
  double sum = 0.5;
  for (int k = 1; k < 200; ++k) {
    const double s = sinh(0.5 * h * k),
                 term = exp(-(x * s) * (2.0 * s)) * (v == 0 ? 1.0 : cosh(h * k));
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return h * sum;
}

FACULA_SCALAR_SLOW double modified_k(double x, int v, bool scaled) {
  if (x == 0.0) return infinity<double>;
  if (!(x > 0.0)) return quiet_nan<double>;
  if (x <= 2.0) return small_k(x, v) * (scaled ? exp(x) : 1.0);
  return scaled_large_k(x, v) * (scaled ? 1.0 : exp(-x));
}

FACULA_SCALAR_SLOW double bessel_j_value(double x, int v) {
  if (!is_finite(x)) return quiet_nan<double>;
  return v == 0 ? ::j0(x) : ::j1(x);
}

FACULA_SCALAR_SLOW double bessel_y_value(double x, int v) {
  if (x == 0.0) return -infinity<double>;
  if (!(x > 0.0 && x < infinity<double>)) return quiet_nan<double>;
  return v == 0 ? ::y0(x) : ::y1(x);
}

// Ai by its two power series; terms stay below e^11.
FACULA_SCALAR_SLOW double airy_series(double x) {
  constexpr double at_zero = 0.3550280538878172, slope = 0.2588194037928068;
  const double cube = x * x * x;
  double f = 1.0, g = x, sum_f = 1.0, sum_g = x;
  for (int k = 1; k < 80; ++k) {
    f *= cube / ((3.0 * k - 1.0) * (3.0 * k));
    g *= cube / ((3.0 * k) * (3.0 * k + 1.0));
    sum_f += f;
    sum_g += g;
    if (abs(f) + abs(g) < 1e-18 * (abs(sum_f) + abs(sum_g))) break;
  }
  return at_zero * sum_f - slope * sum_g;
}

// The integral of e^-t t^(-1/6) (1 + t / (2 w))^(-1/6) over t > 0, divided by gamma(5/6), for w =
// zeta or i zeta; the same sum without the last factor gives the divisor. With t = e^(u - e^-u) the
// trapezoidal rule converges to full precision.
FACULA_SCALAR_SLOW Pair<double> airy_integral(double zeta, bool imaginary) {
  constexpr double h = 0.0625;
  double re = 0.0, im = 0.0, norm = 0.0;
  for (int k = -72; k <= 72; ++k) {
    const double u = h * k, e = exp(-u), t = exp(u - e);
    const double weight = exp(-t) * pow(t, 5.0 / 6.0) * (1.0 + e);
    const double ratio = 0.5 * t / zeta;
    norm += weight;
    if (imaginary) {
      const double size = weight * pow(1.0 + ratio * ratio, -1.0 / 12.0), angle = atan(ratio) / 6.0;
      re += size * cos(angle);
      im += size * sin(angle);
    } else {
      re += weight * pow(1.0 + ratio, -1.0 / 6.0);
    }
  }
  return {re / norm, im / norm};
}

FACULA_SCALAR_SLOW double airy_value(double x) {
  if (!is_finite(x)) return quiet_nan<double>;
  if (x > -4.5 && x < 1.0) return airy_series(x);
  const double a = abs(x), root = sqrt(a), zeta = 2.0 / 3.0 * a * root;
  const auto w = airy_integral(zeta, x < 0.0);
  const double size = 1.0 / (root_of_pi * sqrt(root));
  if (x > 0.0) return 0.5 * size * exp(-zeta) * w.hi;
  const double angle = zeta - 0.7853981633974483;  // the real part of e^(-i angle) (re + i im)
  return size * (w.hi * cos(angle) + w.lo * sin(angle));
}

}  // namespace detail

template <class T>
FACULA_SCALAR T bessel_j0(T x) {
  return static_cast<T>(detail::bessel_j_value(x, 0));
}
template <class T>
FACULA_SCALAR T bessel_j1(T x) {
  return static_cast<T>(detail::bessel_j_value(x, 1));
}
template <class T>
FACULA_SCALAR T bessel_y0(T x) {
  return static_cast<T>(detail::bessel_y_value(x, 0));
}
template <class T>
FACULA_SCALAR T bessel_y1(T x) {
  return static_cast<T>(detail::bessel_y_value(x, 1));
}
template <class T>
FACULA_SCALAR T i0(T x) {
  return static_cast<T>(detail::unscaled_i(x, 0));
}
template <class T>
FACULA_SCALAR T i0e(T x) {
  return static_cast<T>(detail::scaled_i(x, 0));
}
template <class T>
FACULA_SCALAR T i1(T x) {
  return static_cast<T>(detail::unscaled_i(x, 1));
}
template <class T>
FACULA_SCALAR T i1e(T x) {
  return static_cast<T>(detail::scaled_i(x, 1));
}
template <class T>
FACULA_SCALAR T modified_bessel_k0(T x) {
  return static_cast<T>(detail::modified_k(x, 0, false));
}
template <class T>
FACULA_SCALAR T modified_bessel_k1(T x) {
  return static_cast<T>(detail::modified_k(x, 1, false));
}
template <class T>
FACULA_SCALAR T scaled_modified_bessel_k0(T x) {
  return static_cast<T>(detail::modified_k(x, 0, true));
}
template <class T>
FACULA_SCALAR T scaled_modified_bessel_k1(T x) {
  return static_cast<T>(detail::modified_k(x, 1, true));
}
// sin(x) / x, one at zero, zero at infinity.
template <class T>
FACULA_SCALAR T spherical_bessel_j0(T x) {
  if (is_inf(x)) return T(0);
  const double v = x;
  return abs(x) < T(1e-8) ? T(1) : static_cast<T>(sin(v) / v);
}
template <class T>
FACULA_SCALAR T airy_ai(T x) {
  return static_cast<T>(detail::airy_value(x));
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
