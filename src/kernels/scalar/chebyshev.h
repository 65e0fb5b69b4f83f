// Sums of Chebyshev series by Clenshaw's recurrence ("A note on the summation of Chebyshev series",
// 1955).
#pragma once
#include "kernels/scalar/config.h"
#include "kernels/scalar/numeric.h"
#include "kernels/scalar/series.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// Steps are a recursion and no loop, so that loops over elements become vectors.
template <int k, int count>
FACULA_SCALAR double clenshaw(const double (&series)[count], double twice, double b,
                              double before) {
  // What does not wait for the step before is added up first.
  if constexpr (k == 0)
    return multiply_add(0.5 * twice, b, series[0] - before);
  else
    return clenshaw<k - 1>(series, twice, multiply_add(twice, b, series[k] - before), b);
}

// The sum at x of a series over [low, high], or of its first terms.
template <int terms = 0, int count>
FACULA_SCALAR double chebyshev(const double (&series)[count], double x, double low, double high) {
  static_assert(terms <= count);
  const double twice = (4.0 * x - 2.0 * (low + high)) / (high - low);
  return clenshaw<(terms ? terms : count) - 1>(series, twice, 0.0, 0.0);
}

// The first terms of a series as a polynomial in u from -1 to 1, whose sum takes half the
// operations. Its coefficients grow by 1 + sqrt(2) a term: it is for series that fall faster, as
// those of smooth functions do, or for results in float.
template <int terms>
struct Powers {
  double of[terms] = {};
};
template <int terms, int count>
constexpr Powers<terms> powers_of(const double (&series)[count]) {
  static_assert(terms > 2 && terms <= count);
  // In more digits, which the compiler has at no cost. The last two are Chebyshev polynomials.
  long double sum[terms] = {}, before[terms] = {1}, now[terms] = {0, 1};
  sum[0] = series[0];
  sum[1] = series[1];
  for (int n = 2; n < terms; ++n) {
    for (int k = n; k >= 0; --k) {
      const long double next = (k > 0 ? 2 * now[k - 1] : 0) - before[k];
      before[k] = now[k];
      sum[k] += series[n] * next;
      now[k] = next;
    }
  }
  Powers<terms> rounded;
  for (int k = 0; k < terms; ++k) rounded.of[k] = static_cast<double>(sum[k]);
  return rounded;
}
// Every second power from the k-th on, as a polynomial in the square.
template <const auto& powers, int terms, int k, class D>
FACULA_SCALAR D every_second(D square) {
  if constexpr (k + 2 >= terms)
    return powers.of[k];
  else
    return multiply_add(square, every_second<powers, terms, k + 2>(square), powers.of[k]);
}
template <const auto& series, int terms>
constexpr Powers<terms> short_series = powers_of<terms>(series);

// The sum of a series, or of its first terms, in u.
template <const auto& series, int terms, class D>
FACULA_SCALAR D chebyshev_of_unit(D u) {
  const D square = u * u;
  constexpr const Powers<terms>& powers = short_series<series, terms>;
  // The first coefficient is added last: beside it the rest is often small.
  const D odd = u * every_second<powers, terms, 1>(square);
  return D(powers.of[0]) + multiply_add(square, every_second<powers, terms, 2>(square), odd);
}
// As chebyshev().
template <const auto& series, int terms, class D>
FACULA_SCALAR D chebyshev_by_powers(D x, double low, double high) {
  return chebyshev_of_unit<series, terms>((x - 0.5 * (low + high)) * (2.0 / (high - low)));
}

}  // namespace detail
}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
