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
  const double series = (z - 0.5) * log_by_parts(z) - z + (0.9189385332046727 + tail);
  // pi / |sin(pi x)|, from the distance to the nearest integer
  const double whole = round_small(x), t = pi * abs(x - whole), u = t * t;
  const double sine = t * poly(u, 1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880,
                               -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000,
                               1.0 / 355687428096000, -1.0 / 121645100408832000);
  const double rest = log_by_parts(negative ? product * (pi / sine) : product);
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
  return shift + (log_by_parts(x) - 0.5 / x - z * tail);
}

// For positive numbers: the asymptotic series from 8 on, reached by taking off eight reciprocals,
// which in pairs are (2 x + 7) / (u + c), u = x (x + 7).
template <class T>
FACULA_SCALAR bool digamma_in_fast_range(T x) {
  return x > T(1e-10) && x < T(1e30);
}
FACULA_SCALAR double eight_reciprocals(double x) {
  const double u = x * (x + 7.0), low = u * (u + 12.0), high = (u + 6.0) * (u + 10.0);
  const double pairs = (2.0 * u + 12.0) * high + (2.0 * u + 16.0) * low;
  return (2.0 * x + 7.0) * (pairs / (low * high));
}
FACULA_SCALAR float digamma_fast(float given) {
  const double x = given, z = x + 8.0, inverse = 1.0 / z, square = inverse * inverse;
  const double tail =
      poly(square, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760);
  return static_cast<float>((log_by_parts(z) - 0.5 * inverse - square * tail) -
                            eight_reciprocals(x));
}
FACULA_SCALAR double digamma_fast(double x) {
  const bool small = x < 8.0;
  const double z = small ? x + 8.0 : x, inverse = 1.0 / z, square = inverse * inverse;
  const double tail = poly(square, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132,
                           -691.0 / 32760, 1.0 / 12, -3617.0 / 8160, 43867.0 / 14364);
  const double shift = small ? eight_reciprocals(x) : 0.0;
  return (log_by_parts(z) - shift) - multiply_add(square, tail, 0.5 * inverse);
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
constexpr double zeta_corrections[] = {1.0 / 12,
                                       -1.0 / 720,
                                       1.0 / 30240,
                                       -1.0 / 1209600,
                                       1.0 / 47900160,
                                       -691.0 / 1307674368000.0,
                                       1.0 / 74724249600.0,
                                       -3617.0 / 10670622842880000.0,
                                       43867.0 / 5109094217170944000.0};
FACULA_SCALAR_SLOW double zeta_value(double s, double q) {
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
    const double term = zeta_corrections[j] * factor;
    sum += term;
    if (abs(term) < 1e-17 * abs(sum)) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w);
  }
  return sum;
}

// w^-s for positive w; what a float is made of needs no more than doubles.
template <class T>
FACULA_SCALAR double zeta_power(double w, double s) {
  if constexpr (std::is_same_v<T, float>)
    return exp_short(between(-s * log_short(w), -200.0, 200.0));
  else
    return pow_magnitude(w, -s);
}
// The terms n to 0 added to a rest, and the corrections from j on: recursions and no loops, so that
// loops over elements become vectors.
template <class T, int n>
FACULA_SCALAR double zeta_head(double s, double q, double rest) {
  const double sum = rest + zeta_power<T>(q + n, s);
  if constexpr (n == 0)
    return sum;
  else
    return zeta_head<T, n - 1>(s, q, sum);
}
template <int j>
FACULA_SCALAR double zeta_tail(double s, double inverse_square) {
  if constexpr (j == 9) {
    return 0.0;
  } else {
    const double rest = (s + (2 * j + 1)) * (s + (2 * j + 2)) * inverse_square;
    return zeta_corrections[j] + rest * zeta_tail<j + 1>(s, inverse_square);
  }
}

template <class T>
FACULA_SCALAR bool zeta_in_fast_range(T s, T q) {
  return s > T(1) && s <= T(64) && q > T(1e-3) && q <= T(1e6);
}
// The same sums without tests in between, for arguments in the fast range.
template <class T>
FACULA_SCALAR double zeta_fast(double s, double q) {
  constexpr int head = 10;
  const double w = q + head, last = zeta_power<T>(w, s), inverse = 1.0 / w;
  const double tail =
      last * w / (s - 1.0) + 0.5 * last + s * last * inverse * zeta_tail<0>(s, inverse * inverse);
  return zeta_head<T, head - 1>(s, q, tail);
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

// log(x^a e^-x / gamma(a + 9)) as a sum: Stirling's series at a + 9.
FACULA_SCALAR Pair<double> log_gamma_density(double a, double x) {
  const auto z = two_sum(a, 9.0), of_x = log_precise(x), of_z = log_precise(z.hi);
  const double inverse = 1.0 / z.hi, square = inverse * inverse, power = z.hi - 0.5;
  const double tail = inverse * poly(square, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680,
                                     1.0 / 1188, -691.0 / 360360, 1.0 / 156);
  constexpr double root = 0.9189385332046727, root_rest = -3.878e-17;  // log(2 pi) / 2
  const auto up = two_prod(a, of_x.hi), down = two_prod(power, of_z.hi);
  const auto powers = two_sum(up.hi, -down.hi), rest = two_sum(z.hi, -x);
  const auto both = two_sum(powers.hi, rest.hi), sum = two_sum(both.hi, -root);
  const double of_powers = (up.lo - down.lo) + (a * of_x.lo - power * of_z.lo);
  const double of_sums = (powers.lo + rest.lo) + (both.lo + sum.lo);
  const double lo = (of_powers + of_sums) + (z.lo * (0.5 * inverse - of_z.hi) - root_rest) - tail;
  return fast_two_sum(sum.hi, lo);
}
// x^a e^-x / gamma(a + 9), as good as a result of type T needs.
template <class T>
FACULA_SCALAR double gamma_density(double a, double x) {
  if constexpr (std::is_same_v<T, float>) {
    const double z = a + 9.0, inverse = 1.0 / z, square = inverse * inverse;
    const double tail = inverse * poly(square, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680);
    const double log_gamma = (z - 0.5) * log_short(z) - z + (0.9189385332046727 + tail);
    return exp_short(a * log_short(x) - x - log_gamma);
  } else {
    const auto l = log_gamma_density(a, x);
    return exp_fine(l.hi, l.lo);
  }
}

// Arguments for which a few terms of the lower function's series do, of a tested block at least.
template <class T>
FACULA_SCALAR bool igamma_in_fast_range(T a, T x) {
  return a > T(0) && a <= T(64) && x >= T(1e-3) && x <= T(10);
}
struct GammaSum {
  double num, den;
};
// The sum of x^n / ((a + k + 1) ... (a + n)) from n = k on as a quotient, from the last term of
// `terms` on: with one division, and the roundings of products in both of its sides.
template <int k, int terms>
FACULA_SCALAR GammaSum gamma_sum(double a, double x) {
  if constexpr (k == terms) {
    return {1.0, 1.0};
  } else {
    const auto rest = gamma_sum<k + 1, terms>(a, x);
    const double den = rest.den * (a + (k + 1));
    return {multiply_add(x, rest.num, den), den};
  }
}
// Nine factors of the first denominators are those of gamma(a + 9) too.
template <int k>
FACULA_SCALAR double gamma_head(double a, double x, GammaSum rest) {
  if constexpr (k == 0) {
    return rest.num;
  } else {
    const double den = rest.den * (a + k);
    return gamma_head<k - 1>(a, x, {multiply_add(x, rest.num, den), den});
  }
}
template <class T>
FACULA_SCALAR double igamma_fast(double a, double x) {
  constexpr int terms = std::is_same_v<T, float> ? 38 : 49;
  const auto rest = gamma_sum<8, terms>(a, x);
  const double value = gamma_density<T>(a, x) * (gamma_head<8>(a, x, rest) / rest.den);
  return value > 1.0 ? 1.0 : value;
}

// Where sums end for a result of type T, which are doubles in between.
template <class T>
constexpr double smallest_term = std::is_same_v<T, float> ? 1e-10 : 5e-17;

// x^a e^-x / gamma(a + 1) for a < 10 and a float result: Stirling's series at a + 9, and back by a
// product of eight factors.
FACULA_SCALAR double gamma_prefix_short(double a, double x) {
  const double z = a + 9.0, inverse = 1.0 / z, square = inverse * inverse;
  const double low = ((a + 1.0) * (a + 8.0)) * ((a + 2.0) * (a + 7.0));
  const double high = ((a + 3.0) * (a + 6.0)) * ((a + 4.0) * (a + 5.0));
  const double tail = inverse * poly(square, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680);
  const double log_gamma = (z - 0.5) * log_by_parts(z) - z + (0.9189385332046727 + tail);
  return low * high * exp_by_parts(a * log_by_parts(x) - x - log_gamma);
}

// x^a e^-x / gamma(a + 1).
template <class T>
FACULA_SCALAR_SLOW double gamma_prefix(double a, double x) {
  if constexpr (std::is_same_v<T, float>)
    if (a < 10.0) return gamma_prefix_short(a, x);
  if (a < 10.0) return exp_by_parts(a * log_by_parts(x) - x - lgamma_value(a + 1.0));
  const double z = 1.0 / (a * a);
  const double stirling = poly(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188) / a;
  return exp_by_parts(a * log1p_less((x - a) / a) - stirling) / sqrt(2.0 * pi * a);
}

template <class T>
FACULA_SCALAR_SLOW double igamma_series(double a, double x) {
  double term = 1.0, sum = 1.0;
  for (int n = 1; n < 200000 && term > smallest_term<T> * sum; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return gamma_prefix<T>(a, x) * sum;
}

// Legendre's continued fraction for the upper function: numerators and denominators of its
// convergents by the recurrence of Wallis and Euler (Abramowitz and Stegun, 3.10.1), compared
// crosswise, so that no division waits for another.
template <class T>
FACULA_SCALAR_SLOW double igammac_fraction(double a, double x) {
  double b = x + 1.0 - a, before = 0.0, now = 1.0 / b, before_den = now, den = 1.0;
  for (int n = 1; n < 200000; ++n) {
    const double an = n * (a - n);
    b += 2.0;
    const double next = b * now + an * before, next_den = b * den + an * before_den;
    before = now, before_den = den;
    now = next, den = next_den;
    const double left = now * before_den, right = before * den;
    if (abs(left - right) < 4.0 * smallest_term<T> * abs(left)) break;
    if (den > 1e100) {
      const double by = 1.0 / den;
      before *= by, before_den *= by;
      now *= by, den = 1.0;
    }
  }
  return gamma_prefix<T>(a, x) * a * (now / den);
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
  const double log_scale = a * log_by_parts(x) - lgamma_value(1.0 + a);
  return -expm1(log_scale) - exp_by_parts(log_scale) * a * sum;
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

template <class T>
FACULA_SCALAR_SLOW double igamma_value(double a, double x) {
  const auto edge = igamma_edge(a, x);
  if (edge.known) return edge.lower;
  return x > 1.1 && x > a ? 1.0 - igammac_fraction<T>(a, x) : igamma_series<T>(a, x);
}

template <class T>
FACULA_SCALAR_SLOW double igammac_value(double a, double x) {
  const auto edge = igamma_edge(a, x);
  if (edge.known) return 1.0 - edge.lower;
  if (x > 1.1) return x < a ? 1.0 - igamma_series<T>(a, x) : igammac_fraction<T>(a, x);
  return a > x + 0.5 ? 1.0 - igamma_series<T>(a, x) : igammac_small(a, x);
}

FACULA_SCALAR_SLOW double polygamma_value(int64_t n, double x) {
  if (n == 0) return digamma_value(x);
  if (n == 1) return trigamma_value(x);
  const double order = static_cast<double>(n), factorial = exp_by_parts(lgamma_value(order + 1.0));
  return (n % 2 != 0 ? 1.0 : -1.0) * factorial * zeta_value(order + 1.0, x);
}

}  // namespace detail

template <class T>
FACULA_SCALAR T lgamma(T x) {
  return detail::lgamma_value(x);
}
template <class T>
FACULA_SCALAR T digamma(T x) {
  if (detail::digamma_in_fast_range(x)) return detail::digamma_fast(x);
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
  if (detail::zeta_in_fast_range(s, q)) return static_cast<T>(detail::zeta_fast<T>(s, q));
  return static_cast<T>(detail::zeta_value(s, q));
}
// The regularised lower and upper incomplete gamma functions.
template <class T>
FACULA_SCALAR T igamma(T a, T x) {
  if (detail::igamma_in_fast_range(a, x)) return static_cast<T>(detail::igamma_fast<T>(a, x));
  return static_cast<T>(detail::igamma_value<T>(a, x));
}
template <class T>
FACULA_SCALAR T igammac(T a, T x) {
  return static_cast<T>(detail::igammac_value<T>(a, x));
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
