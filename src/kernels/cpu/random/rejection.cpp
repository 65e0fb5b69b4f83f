// Distributions that take a varying number of draws a value: Poisson, binomial, gamma, Dirichlet.
#include <mutex>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/random/distributions.h"
#include "kernels/cpu/random/units_ahead.h"

namespace facula::dist {

namespace {

// log(x!) without the global variable that lgamma() writes.
double log_factorial(double x) {
  int sign = 0;
  return lgamma_r(x + 1.0, &sign);
}

// PyTorch counts in int64_t, and x86 turns what does not fit into its smallest value.
double as_count(double k) { return k < 0x1p63 ? k : -0x1p63; }

// Counts how many uniforms can be multiplied before the product falls to exp(-rate).
double poisson_by_product(UnitsAhead& units, double rate) {
  const double limit = std::exp(-rate);
  double product = units.unit(), count = 0;
  for (; product > limit; product *= units.unit()) ++count;
  return count;
}

// Hoermann's transformed rejection (PTRS, 1993), for rates from 10 on.
double poisson_by_rejection(UnitsAhead& units, double rate) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = units.unit() - 0.5;
    const double v = units.unit();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return as_count(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double ratio = std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
    if (ratio <= -rate + k * log_rate - log_factorial(k)) return as_count(k);
  }
}

double poisson_count(UnitsAhead& units, double rate) {
  check(rate >= 0, "poisson(): invalid Poisson rate: expected a rate >= 0; got ", rate);
  if (rate == 0) return 0;
  return rate < 10 ? poisson_by_product(units, rate) : poisson_by_rejection(units, rate);
}

// The error of Stirling's formula for log(k!).
double stirling_tail(double k) {
  static constexpr double small[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                     0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                     0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                     0.00833056343336287};
  if (k < 10) return small[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Adds up geometric waiting times until they exceed the number of trials.
template <class T>
T binomial_by_waiting(UnitsAhead& units, T count, T p) {
  const double log_miss = std::log1p(-p);
  double waited = 0;
  T hits = 0;
  while (true) {
    waited += std::ceil(std::log(units.unit()) / log_miss);
    if (waited > count) return hits;
    hits += 1;
  }
}

// Hoermann's BTRS (1993), for count * p from 10 on. The first products are in T, as in PyTorch.
template <class T>
T binomial_by_rejection(UnitsAhead& units, T count, T p) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double m = std::floor((count + 1) * p);
  while (true) {
    const double u = units.unit() - 0.5;
    double v = units.unit();
    const double us = 0.5 - std::fabs(u);
    const T k = static_cast<T>(std::floor((2 * a / us + b) * u + c));
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_r) return k;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (odds * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                         stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}

template <class T>
T binomial_likely_miss(UnitsAhead& units, T count, T p) {
  return count * p >= 10 ? binomial_by_rejection(units, count, p)
                         : binomial_by_waiting(units, count, p);
}

template <class T>
T binomial_count(UnitsAhead& units, T count, T p) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (std::isnan(p) || std::isnan(count)) return std::numeric_limits<T>::quiet_NaN();
  if (p <= T(0.5)) return binomial_likely_miss(units, count, p);
  return count - binomial_likely_miss(units, count, static_cast<T>(1.0 - p));
}

// Marsaglia and Tsang (2000); shapes below one are raised by one and scaled back by u^(1/alpha).
template <class T>
T gamma_sample(UnitsAhead& units, T alpha) {
  if (alpha == 0) return 0;
  double scale = 1;
  if (alpha < 1) {
    scale = std::pow(1 - units.unit(), static_cast<double>(T(1) / alpha));
    alpha += 1;
  }
  const double d = alpha - T(1.0f / 3.0f);
  if (!(d > 0)) return std::numeric_limits<T>::quiet_NaN();  // the loop would not end
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    double x = units.normal(), y = 1 + c * x;
    for (; y <= 0; y = 1 + c * x) x = units.normal();
    const double v = y * y * y, u = 1 - units.unit(), square = x * x;
    if (u < 1 - 0.0331f * square * square) return static_cast<T>(scale * d * v);
    if (std::log(u) < 0.5 * square + d * (1 - v + std::log(v)))
      return static_cast<T>(scale * d * v);
  }
}

template <class T>
constexpr Normals normals_for = std::is_same_v<T, double> ? Normals::exact : Normals::rounded_later;

double pairwise_sum(const double* x, int64_t n) {
  if (n <= 4) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum;
  }
  return pairwise_sum(x, n / 2) + pairwise_sum(x + n / 2, n - n / 2);
}

template <class T>
void dirichlet_row(UnitsAhead& units, T* out, const T* alpha, int64_t n,
                   std::vector<double>& gammas) {
  constexpr T smallest = std::numeric_limits<T>::min();
  const T largest = std::nextafter(T(1), T(0));
  units.pause();
  for_each_draw(units, n, [&](int64_t i) {
    gammas[i] = std::max(std::numeric_limits<double>::min(),
                         gamma_sample(units, static_cast<double>(alpha[i])));
  });
  const double sum = pairwise_sum(gammas.data(), n);
  for (int64_t i = 0; i < n; ++i)
    out[i] = std::min(largest, std::max(smallest, static_cast<T>(gammas[i] / sum)));
}

}  // namespace

template <class T>
void poisson(Generator& g, T* out, const T* rate, int64_t n) {
  const std::lock_guard lock(g.mutex());
  UnitsAhead units(g, n);
  for_each_draw(units, n, [&](int64_t i) {
    out[i] = static_cast<T>(poisson_count(units, static_cast<double>(rate[i])));
  });
}

template <class T>
void binomial(Generator& g, T* out, const T* count, const T* p, int64_t n) {
  const std::lock_guard lock(g.mutex());
  UnitsAhead units(g, n);
  for_each_draw(units, n, [&](int64_t i) { out[i] = binomial_count(units, count[i], p[i]); });
}

template <class T>
void standard_gamma(Generator& g, T* out, const T* alpha, int64_t n) {
  const std::lock_guard lock(g.mutex());
  constexpr T smallest = std::numeric_limits<T>::min();
  UnitsAhead units(g, n, normals_for<T>);
  for_each_draw(units, n, [&](int64_t i) {
    const T sample = gamma_sample(units, alpha[i]);
    out[i] = sample < smallest ? smallest : sample;
  });
}

template <class T>
void dirichlet(Generator& g, T* out, const T* alpha, int64_t rows, int64_t n) {
  const std::lock_guard lock(g.mutex());
  std::vector<double> gammas(n);
  UnitsAhead units(g, rows * n, normals_for<T>);
  for (int64_t row = 0; row < rows; ++row)
    dirichlet_row(units, out + row * n, alpha + row * n, n, gammas);
}

template void poisson<float>(Generator&, float*, const float*, int64_t);
template void poisson<double>(Generator&, double*, const double*, int64_t);
template void poisson<Half>(Generator&, Half*, const Half*, int64_t);
template void poisson<BFloat16>(Generator&, BFloat16*, const BFloat16*, int64_t);

template void binomial<float>(Generator&, float*, const float*, const float*, int64_t);
template void binomial<double>(Generator&, double*, const double*, const double*, int64_t);
template void standard_gamma<float>(Generator&, float*, const float*, int64_t);
template void standard_gamma<double>(Generator&, double*, const double*, int64_t);
template void dirichlet<float>(Generator&, float*, const float*, int64_t, int64_t);
template void dirichlet<double>(Generator&, double*, const double*, int64_t, int64_t);

}  // namespace facula::dist
