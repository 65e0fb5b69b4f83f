// The gamma family: lgamma, digamma, trigamma, polygamma, Hurwitz zeta, incomplete gamma functions.
// Computed in double for every type: float results are rounded nearly right. Bounds for double
// (units in the last place), away from zeros: lgamma 2, digamma 8; the rest has none.
#pragma once
#include <math.h>

#include "kernels/scalar/math.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

constexpr double pi = 3.141592653589793;

// log|gamma(x)|; the reentrant library function, since lgamma writes a global.
FACULA_SCALAR_SLOW double lgamma_value(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// The same in double, without a branch, for results in float: Stirling's series from 8 on, reached
// by a product of eight factors; below 1/2 by reflection. Absolute error a few times 2^-52 of the
// larger terms, which is enough for a float beside the zeros too.
FACULA_SCALAR double lgamma_short(double given) {
  const double x = given < -1e9 ? -1e9 : given;  // every float from there on is an integer
  const bool negative = x < 0.5;
  const double y = negative ? 1.0 - x : x;
  const bool small = y < 8.0;
  const double low = (y * (y + 7.0)) * ((y + 1.0) * (y + 6.0));
  const double high = ((y + 2.0) * (y + 5.0)) * ((y + 3.0) * (y + 4.0));
  const double product = small ? low * high : 1.0, z = small ? y + 8.0 : y;
  const double inverse = 1.0 / z, square = inverse * inverse;
  const double tail = inverse * poly(square, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680,
                                     1.0 / 1188, -691.0 / 360360);
  const double series = (z - 0.5) * log(z) - z + (0.9189385332046727 + tail);
  // pi / |sin(pi x)|, from the distance to the nearest integer
  const double whole = round_small(x), t = pi * abs(x - whole), u = t * t;
  const double sine = t * poly(u, 1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880,
                               -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000,
                               1.0 / 355687428096000, -1.0 / 121645100408832000);
  const double rest = log(negative ? product * (pi / sine) : product);
  double value = negative ? rest - series : series - rest;
  value = x == 1.0 ? 0.0 : value;
  value = x == 2.0 ? 0.0 : value;
  const double pole = x == whole ? infinity<double> : value;
  value = x <= 0.0 ? pole : value;
  return x == infinity<double> ? x : value;
}
FACULA_SCALAR float lgamma_value(float x) {
  return static_cast<float>(lgamma_short(static_cast<double>(x)));
}

FACULA_SCALAR_SLOW double digamma_value(double x) {
  if (x == 0.0) return copysign(infinity<double>, -x);
  if (!(x > -infinity<double>)) return quiet_nan<double>;
  double shift = 0.0;
  if (x < 0.0) {  // reflection, with the pole's distance taken before pi is multiplied in
    if (x == trunc(x)) return quiet_nan<double>;
    shift = -pi / tan(pi * (x - round(x)));
    x = 1.0 - x;
  }
  if (x == infinity<double>) return x;
  for (; x < 10.0; x += 1.0) shift -= 1.0 / x;
  const double z = 1.0 / (x * x);
  const double tail = poly(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132,
                           -691.0 / 32760, 1.0 / 12, -3617.0 / 8160);
  return shift + (log(x) - 0.5 / x - z * tail);
}

FACULA_SCALAR_SLOW double trigamma_value(double x) {
  if (!(x > -infinity<double>)) return quiet_nan<double>;
  double sign = 1.0, sum = 0.0;
  if (x < 0.5) {
    if (x == floor(x)) return infinity<double>;
    const double s = sin(pi * (x - round(x)));
    sign = -1.0;
    sum = -pi * pi / (s * s);
    x = 1.0 - x;
  }
  for (; x < 10.0; x += 1.0) sum += 1.0 / (x * x);
  const double z = 1.0 / (x * x);
  const double tail = poly(z, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730,
                           7.0 / 6, -3617.0 / 510);
  return sign * (sum + 1.0 / x + 0.5 * z + z / x * tail);
}

// w^-s; by products where s is a small integer, as polygamma's is.
FACULA_SCALAR_SLOW double inverse_power(double w, double s) {
  if (s > 16.0 || s != floor(s)) return pow(w, -s);
  double product = 1.0, square = w;
  for (auto left = static_cast<unsigned>(s); left; left >>= 1, square *= square)
    if (left & 1) product *= square;
  return 1.0 / product;
}

// sum of (q + n)^-s over n >= 0 by Euler and Maclaurin: a head of terms, then the corrections
// B_2j / (2j)! s (s + 1) ... (s + 2j - 2) w^(-s - 2j + 1).
FACULA_SCALAR_SLOW double zeta_value(double s, double q) {
  constexpr double bernoulli[] = {1.0 / 12,
                                  -1.0 / 720,
                                  1.0 / 30240,
                                  -1.0 / 1209600,
                                  1.0 / 47900160,
                                  -691.0 / 1307674368000.0,
                                  1.0 / 74724249600.0,
                                  -3617.0 / 10670622842880000.0,
                                  43867.0 / 5109094217170944000.0};
  if (s == 1.0) return infinity<double>;
  if (s < 1.0) return quiet_nan<double>;
  if (q <= 0.0) {
    if (q == floor(q)) return infinity<double>;
    if (s != floor(s)) return quiet_nan<double>;
  }
  if (is_nan(s) || is_nan(q)) return quiet_nan<double>;
  double sum = 0.0, w = q;
  for (int n = 0; n < 10 || w < 10.0; ++n, w += 1.0) {
    const double term = inverse_power(w, s);
    sum += term;
    if (w > 0.0 && abs(term) < 1e-17 * abs(sum)) return sum;
  }
  const double last = inverse_power(w, s);
  sum += last * w / (s - 1.0) + 0.5 * last;
  double factor = s * last / w;
  for (int j = 0; j < 9; ++j) {
    const double term = bernoulli[j] * factor;
    sum += term;
    if (abs(term) < 1e-17 * abs(sum)) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w);
  }
  return sum;
}

// log(1 + u) - u without cancellation.
FACULA_SCALAR_SLOW double log1p_less(double u) {
  if (abs(u) > 0.3) return log1p(u) - u;
  double term = u, sum = 0.0;
  for (int n = 2; n < 60; ++n) {
    term *= -u;
    sum += term / n;
    if (abs(term) < 1e-18 * abs(sum)) break;
  }
  return sum;
}

// x^a e^-x / gamma(a + 1).
FACULA_SCALAR_SLOW double gamma_prefix(double a, double x) {
  if (a < 10.0) return exp(a * log(x) - x - lgamma_value(a + 1.0));
  const double z = 1.0 / (a * a);
  const double stirling = poly(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188) / a;
  return exp(a * log1p_less((x - a) / a) - stirling) / sqrt(2.0 * pi * a);
}

FACULA_SCALAR_SLOW double igamma_series(double a, double x) {
  double term = 1.0, sum = 1.0;
  for (int n = 1; n < 200000 && term > 1e-17 * sum; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return gamma_prefix(a, x) * sum;
}

// Legendre's continued fraction for the upper function, evaluated by Lentz's method.
FACULA_SCALAR_SLOW double igammac_fraction(double a, double x) {
  double b = x + 1.0 - a, c = 1e300, d = 1.0 / b, h = d;
  for (int n = 1; n < 200000; ++n) {
    const double an = -n * (n - a);
    b += 2.0;
    d = an * d + b;
    d = 1.0 / (abs(d) < 1e-300 ? 1e-300 : d);
    c = b + an / c;
    c = abs(c) < 1e-300 ? 1e-300 : c;
    h *= d * c;
    if (abs(d * c - 1.0) < 2e-16) break;
  }
  return gamma_prefix(a, x) * a * h;
}

// The upper function for x < 1 and small a, where 1 - P would cancel:
// Q = 1 - x^a / gamma(1 + a) - x^a / gamma(a) sum over n >= 1 of (-x)^n / (n! (a + n)).
FACULA_SCALAR_SLOW double igammac_small(double a, double x) {
  double term = 1.0, sum = 0.0;
  for (int n = 1; n < 200; ++n) {
    term *= -x / n;
    sum += term / (a + n);
    if (abs(term) < 1e-17 * abs(sum)) break;
  }
  const double log_scale = a * log(x) - lgamma_value(1.0 + a);
  return -expm1(log_scale) - exp(log_scale) * a * sum;
}

// Arguments where the value is known without a sum. PyTorch looks at them before it looks for nan.
struct GammaEdge {
  bool known;
  double lower;
};
FACULA_SCALAR_SLOW GammaEdge igamma_edge(double a, double x) {
  if (x < 0.0 || a < 0.0) return {true, quiet_nan<double>};
  if (a == 0.0) return {true, x > 0.0 ? 1.0 : quiet_nan<double>};
  if (x == 0.0) return {true, 0.0};
  if (a == infinity<double>) return {true, x == infinity<double> ? quiet_nan<double> : 0.0};
  return {x == infinity<double>, 1.0};
}

FACULA_SCALAR_SLOW double igamma_value(double a, double x) {
  const auto edge = igamma_edge(a, x);
  if (edge.known) return edge.lower;
  return x > 1.1 && x > a ? 1.0 - igammac_fraction(a, x) : igamma_series(a, x);
}

FACULA_SCALAR_SLOW double igammac_value(double a, double x) {
  const auto edge = igamma_edge(a, x);
  if (edge.known) return 1.0 - edge.lower;
  if (x > 1.1) return x < a ? 1.0 - igamma_series(a, x) : igammac_fraction(a, x);
  return a > x + 0.5 ? 1.0 - igamma_series(a, x) : igammac_small(a, x);
}

FACULA_SCALAR_SLOW double polygamma_value(int64_t n, double x) {
  if (n == 0) return digamma_value(x);
  if (n == 1) return trigamma_value(x);
  const double order = static_cast<double>(n), factorial = exp(lgamma_value(order + 1.0));
  return (n % 2 != 0 ? 1.0 : -1.0) * factorial * zeta_value(order + 1.0, x);
}

}  // namespace detail

template <class T>
FACULA_SCALAR T lgamma(T x) {
  return detail::lgamma_value(x);
}
template <class T>
FACULA_SCALAR T digamma(T x) {
  return static_cast<T>(detail::digamma_value(x));
}
template <class T>
FACULA_SCALAR T trigamma(T x) {
  return static_cast<T>(detail::trigamma_value(x));
}
// The n-th derivative of digamma, n >= 0.
template <class T>
FACULA_SCALAR T polygamma(int64_t n, T x) {
  return static_cast<T>(detail::polygamma_value(n, x));
}
template <class T>
FACULA_SCALAR T zeta(T s, T q) {
  return static_cast<T>(detail::zeta_value(s, q));
}
// The regularised lower and upper incomplete gamma functions.
template <class T>
FACULA_SCALAR T igamma(T a, T x) {
  return static_cast<T>(detail::igamma_value(a, x));
}
template <class T>
FACULA_SCALAR T igammac(T a, T x) {
  return static_cast<T>(detail::igammac_value(a, x));
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
