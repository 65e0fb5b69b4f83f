// Implicit reparameterization (Figurnov, Mohamed and Mnih, 2018): differentiating the equation
// P(sample, alpha) = quantile gives d sample / d alpha = -(dP/dalpha) / density. P is a series or a
// continued fraction, evaluated in numbers that carry their derivative by alpha. The leading factor
// of P is divided by the density before either is computed, so nothing under- or overflows.
#include "kernels/cpu/random/sample_gradients.h"

#include <cmath>
#include <limits>

#include "core/threads.h"
#include "kernels/scalar/gamma.h"

namespace facula::dist {
namespace {

constexpr double precision = 1e-13;
constexpr int most_steps = 20000;
constexpr int64_t grain = 64;  // an element takes about a microsecond

double digamma(double x) { return scalar::math::detail::digamma_value(x); }

// A number and its derivative by alpha.
struct Dual {
  double value, slope;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.value * b.slope + a.slope * b.value};
}
Dual operator/(Dual a, Dual b) {
  const double ratio = a.value / b.value;
  return {ratio, (a.slope - ratio * b.slope) / b.value};
}
bool is_one(Dual d) { return std::fabs(d.value - 1) < precision && std::fabs(d.slope) < precision; }
Dual away_from_zero(Dual d) {
  constexpr double tiny = 1e-290;
  return std::fabs(d.value) < tiny ? Dual{tiny, d.slope} : d;
}

// first + a(1) / (b(1) + a(2) / (b(2) + ...)) by Lentz's method; step(i) gives a and b.
template <class Step>
Dual continued_fraction(Dual first, Step step) {
  Dual value = away_from_zero(first), c = value, d = {0, 0};
  for (int i = 1; i < most_steps; ++i) {
    const auto [a, b] = step(i);
    d = Dual{1, 0} / away_from_zero(b + a * d);
    c = away_from_zero(b + a / c);
    const Dual factor = c * d;
    value = value * factor;
    if (is_one(factor)) break;
  }
  return value;
}
struct Fraction {
  Dual a, b;
};

// --- gamma

// Power series of P, for samples up to about alpha: all terms but a few have one sign.
double gamma_by_series(double alpha, double x) {
  double term = x / alpha, slope = std::log(x) - digamma(alpha + 1), sum = term * slope;
  for (int n = 1; n < most_steps; ++n) {
    term *= x / (alpha + n);
    slope -= 1 / (alpha + n);
    sum += term * slope;
    if (std::fabs(term * slope) < precision * std::fabs(sum)) break;
  }
  return -sum;
}

// Legendre's continued fraction of 1 - P, for samples above.
double gamma_by_fraction(double alpha, double x) {
  const Dual q = continued_fraction({x + 1 - alpha, -1}, [&](int i) {
    const double n = i;
    return Fraction{{-n * (n - alpha), n}, {x + 2 * n + 1 - alpha, -1}};
  });
  const Dual inverse = Dual{1, 0} / q;
  return x * (inverse.slope + inverse.value * (std::log(x) - digamma(alpha)));
}

// Wilson and Hilferty (1931): the cube root of sample / alpha is nearly normal, and the more so the
// larger alpha is.
double gamma_by_cube_root(double alpha, double x) {
  const double spread = 1 / (9 * alpha), root = std::cbrt(x / alpha);
  const double normal = (root - 1 + spread) / std::sqrt(spread);
  const double slope = spread / alpha - 0.5 * normal * std::sqrt(spread) / alpha;
  return x / alpha + 3 * alpha * root * root * slope;
}

double gamma_grad(double alpha, double x) {
  if (!(alpha > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (alpha > 1e6) return gamma_by_cube_root(alpha, x);
  return x <= alpha + 1 ? gamma_by_series(alpha, x) : gamma_by_fraction(alpha, x);
}

// --- Dirichlet

// The continued fraction of the incomplete beta function I_x(a, b) (DLMF 8.17.22), whose value is
// 1 / (1 + d(1) / (1 + d(2) / ...)). a and b carry slopes: alpha is one of them.
Dual beta_fraction(Dual a, Dual b, double x) {
  const Dual one = {1, 0}, sum = a + b, sample = {x, 0}, minus = {-x, 0};
  const Dual q = continued_fraction(one, [&](int i) {
    const Dual m = {static_cast<double>(i / 2), 0}, even = a + m + m;
    if (i % 2 == 1) {
      const Dual d = minus * (a + m) * (sum + m) / (even * (even + one));
      return Fraction{d, one};
    }
    const Dual d = sample * m * (b + Dual{-m.value, 0}) / ((even + Dual{-1, 0}) * even);
    return Fraction{d, one};
  });
  return one / q;
}

double beta_grad(double x, double alpha, double beta) {
  if (!(alpha > 0) || !(beta > 0) || !(x >= 0) || !(x <= 1))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  const double mean_term = digamma(alpha + beta) + std::log(x);
  if (x <= (alpha + 1) / (alpha + beta + 2)) {
    const Dual f = beta_fraction({alpha, 1}, {beta, 0}, x);
    return -x / alpha * (f.slope + f.value * (mean_term - digamma(alpha + 1)));
  }
  const Dual f = beta_fraction({beta, 0}, {alpha, 1}, 1 - x);
  return x / beta * (f.slope + f.value * (mean_term - digamma(alpha)));
}

}  // namespace

template <class T>
void standard_gamma_grad(T* out, const T* alpha, const T* sample, int64_t n) {
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] =
          static_cast<T>(gamma_grad(static_cast<double>(alpha[i]), static_cast<double>(sample[i])));
  });
}

template <class T>
void dirichlet_grad(T* out, const T* x, const T* alpha, const T* total, int64_t n) {
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double a = static_cast<double>(alpha[i]);
      out[i] = static_cast<T>(
          beta_grad(static_cast<double>(x[i]), a, static_cast<double>(total[i]) - a));
    }
  });
}

template void standard_gamma_grad<float>(float*, const float*, const float*, int64_t);
template void standard_gamma_grad<double>(double*, const double*, const double*, int64_t);
template void dirichlet_grad<float>(float*, const float*, const float*, const float*, int64_t);
template void dirichlet_grad<double>(double*, const double*, const double*, const double*, int64_t);

}  // namespace facula::dist
