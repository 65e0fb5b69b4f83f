// Sums of Chebyshev series by Clenshaw's recurrence ("A note on the summation of Chebyshev series",
// 1955).
#pragma once
#include "kernels/scalar/config.h"
#include "kernels/scalar/series.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// Steps are a recursion and no loop, so that loops over elements become vectors.
template <int k, int count>
FACULA_SCALAR double clenshaw(const double (&series)[count], double twice, double b,
                              double before) {
  if constexpr (k == 0)
    return series[0] + (0.5 * twice * b - before);
  else
    return clenshaw<k - 1>(series, twice, series[k] + (twice * b - before), b);
}

// The sum at x of a series over [low, high], or of its first terms.
template <int terms = 0, int count>
FACULA_SCALAR double chebyshev(const double (&series)[count], double x, double low, double high) {
  static_assert(terms <= count);
  const double twice = (4.0 * x - 2.0 * (low + high)) / (high - low);
  return clenshaw<(terms ? terms : count) - 1>(series, twice, 0.0, 0.0);
}

}  // namespace detail
}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
