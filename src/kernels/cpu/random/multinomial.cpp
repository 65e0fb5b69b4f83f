// Sampling of category numbers.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/random/distributions.h"
#include "kernels/cpu/random/units_ahead.h"

namespace facula::dist {

namespace {

// The type in which weights are added up and compared.
template <class T>
using Sum = std::conditional_t<is_reduced<T>, float, T>;

template <class T>
T weight_at(const Weights<T>& w, int64_t row, int64_t i) {
  return w.data[row * w.row_stride + i * w.stride];
}

// Returns the sum of one row of weights after looking at each of them.
template <class T>
Sum<T> checked_sum(const Weights<T>& w, int64_t row) {
  Sum<T> sum = 0;
  for (int64_t i = 0; i < w.n; ++i) {
    const auto value = static_cast<Sum<T>>(weight_at(w, row, i));
    check(value >= 0 && std::isfinite(value),
          "multinomial(): expected finite probabilities >= 0; got ", value, " at [", row, ", ", i,
          "]");
    sum += value;
  }
  check(sum > 0, "multinomial(): invalid multinomial distribution: expected a sum of ",
        "probabilities > 0; got ", sum, " in row ", row);
  return sum;
}

// Cumulated weights of one row, the last exactly 1.
template <class T>
void cumulate(const Weights<T>& w, int64_t row, std::vector<Sum<T>>& cumulative) {
  const Sum<T> total = checked_sum(w, row);
  Sum<T> sum = 0;
  for (int64_t i = 0; i < w.n; ++i) {
    sum += static_cast<Sum<T>>(weight_at(w, row, i));
    cumulative[i] = sum / total;
  }
  cumulative[w.n - 1] = 1;
}

// How many of the numbers, which rise, are below u. Few of them are all compared, since the
// branches of a search are a guess each.
template <class S>
int64_t slot_of(const std::vector<S>& rising, double u) {
  constexpr size_t few = 64;
  const auto is_below = [](S c, double x) { return c < x; };
  if (rising.size() > few)
    return std::lower_bound(rising.begin(), rising.end(), u, is_below) - rising.begin();
  S limit = static_cast<S>(u);  // c < u is c < limit, where limit is not rounded down
  if (limit < u) limit = std::nextafter(limit, S(2));
  int32_t below = 0;
  for (const S c : rising) below += c < limit;
  return below;
}

template <class S>
struct Keyed {
  S key;
  int64_t index;
};

// NaN counts as the largest.
template <class S>
bool larger(const Keyed<S>& a, const Keyed<S>& b) {
  return (std::isnan(a.key) && !std::isnan(b.key)) || a.key > b.key;
}

// The k largest, largest first. Which of equal keys come first depends on the algorithm, and 16-bit
// weights make equal keys common: so this is PyTorch's choice between the two.
template <class S>
void select_largest(std::vector<Keyed<S>>& keys, int64_t k) {
  const auto first = keys.begin();
  if (k * 64 <= static_cast<int64_t>(keys.size())) {
    std::partial_sort(first, first + k, keys.end(), larger<S>);
    return;
  }
  std::nth_element(first, first + k - 1, keys.end(), larger<S>);
  std::sort(first, first + k - 1, larger<S>);
}

template <class S>
void pick(std::vector<Keyed<S>>& keys, int64_t k, int64_t* out) {
  if (k == 1) {
    const auto smaller = [](const Keyed<S>& a, const Keyed<S>& b) { return larger(b, a); };
    *out = std::max_element(keys.begin(), keys.end(), smaller)->index;
    return;
  }
  select_largest(keys, k);
  for (int64_t i = 0; i < k; ++i) out[i] = keys[i].index;
}

// Exponential noise is drawn in the weights' memory order where they fill their memory, else in
// row order.
template <class T>
bool columns_first(const Weights<T>& w) {
  return w.rows > 1 && w.n > 1 && w.row_stride == 1 && w.stride == w.rows;
}

}  // namespace

template <class T>
void multinomial_with_replacement(Generator& g, int64_t* out, const Weights<T>& w, int64_t k) {
  if (k == 1) return multinomial_without_replacement(g, out, w, k);
  const std::lock_guard lock(g.mutex());
  std::vector<Sum<T>> cumulative(w.n);
  UnitsAhead units(g, w.rows * k);
  for (int64_t row = 0; row < w.rows; ++row) {
    cumulate(w, row, cumulative);
    units.pause();
    for_each_draw(units, k, [&](int64_t) { *out++ = slot_of(cumulative, units.unit()); });
  }
}

// The k largest of weight / Exp(1) are a sample without replacement.
template <class T>
void multinomial_without_replacement(Generator& g, int64_t* out, const Weights<T>& w, int64_t k) {
  check(k >= 1 && k <= w.n, "multinomial(): expected 1 to ", w.n,
        " samples without replacement; got ", k);
  for (int64_t row = 0; row < w.rows; ++row) checked_sum(w, row);
  std::vector<T> noise(w.rows * w.n);
  exponential(g, noise.data(), w.rows * w.n, 1.0);

  const bool by_columns = columns_first(w);
  const int64_t row_step = by_columns ? 1 : w.n, step = by_columns ? w.rows : 1;
  std::vector<Keyed<Sum<T>>> keys(w.n);
  for (int64_t row = 0; row < w.rows; ++row) {
    for (int64_t i = 0; i < w.n; ++i) {
      const auto weight = static_cast<Sum<T>>(weight_at(w, row, i));
      const auto divisor = static_cast<Sum<T>>(noise[row * row_step + i * step]);
      keys[i] = {static_cast<Sum<T>>(static_cast<T>(weight / divisor)), i};
    }
    pick(keys, k, out + row * k);
  }
}

#define FACULA_FLOATING(T)                                                                         \
  template void multinomial_with_replacement<T>(Generator&, int64_t*, const Weights<T>&, int64_t); \
  template void multinomial_without_replacement<T>(Generator&, int64_t*, const Weights<T>&,        \
                                                   int64_t);
FACULA_FLOATING(float)
FACULA_FLOATING(double)
FACULA_FLOATING(Half)
FACULA_FLOATING(BFloat16)

}  // namespace facula::dist
