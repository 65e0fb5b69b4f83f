#include "kernels/cpu/sort/search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/sort/places.h"
#include "kernels/cpu/sort/scan.h"
#include "kernels/cpu/sort/sort.h"

namespace facula::cpu {
namespace {

// --- searchsorted

// The first place in [begin, end) whose value is not below v (right: above v). NaN is above all.
template <class T>
int64_t place_of(const T* sorted, const int64_t* order, int64_t begin, int64_t end, T v,
                 bool right) {
  const int64_t origin = begin;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const T at = sorted[order ? origin + order[middle] : middle];
    const bool stop = right ? at > v : at >= v;
    if (stop)
      end = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

// The same for values that share a row which rises.
constexpr int64_t place_run = 1024;
template <class T, class I>
void places_of(const T* sorted, int64_t length, const T* v, int64_t n, bool right, I* to) {
  int64_t places[place_run];
  FACULA_OF_ISA(find_places<T>)(sorted, length, v, n, right, places);
  for (int64_t k = 0; k < n; ++k) to[k] = static_cast<I>(places[k]);
}

template <class T, class I>
void search_rows(const Tensor& sorted, const Tensor& values, bool right, const Tensor& sorter,
                 const Tensor& out) {
  const int64_t length = sorted.sizes()[sorted.dim() - 1];
  const bool one_row = sorted.dim() == 1;
  const int64_t per_row =
      one_row || values.dim() == 0 ? values.numel() : values.sizes()[values.dim() - 1];
  const T* from = sorted.data<T>();
  const T* v = values.data<T>();
  const int64_t* order = sorter.defined() ? sorter.data<int64_t>() : nullptr;
  I* to = out.data<I>();
  // Looking whether a row rises is worth it where it has about as many values.
  const auto rises_for = [&](const T* row, int64_t count) {
    return !order && length <= 16 * count && FACULA_OF_ISA(rises<T>)(row, length);
  };
  const bool one_rises = one_row && rises_for(from, values.numel());
  parallel_for(values.numel(), place_run, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin, n; i < end; i += n) {
      const int64_t row = one_row ? 0 : i / per_row, start = row * length;
      n = std::min({place_run, end - i, one_row ? end : (row + 1) * per_row - i});
      if (one_row ? one_rises : rises_for(from + start, n)) {
        places_of(from + start, length, v + i, n, right, to + i);
        continue;
      }
      const int64_t* row_order = order ? order + start : nullptr;
      for (int64_t k = i; k < i + n; ++k)
        to[k] = static_cast<I>(place_of(from + start, row_order, 0, length, v[k], right));
    }
  });
}

// --- counting integers

constexpr int64_t counted_run = 32768;  // numbers that one task looks at, at least

// The least and the greatest of n >= 1 numbers.
template <class T>
std::pair<T, T> extremes_of(const T* x, int64_t n) {
  std::vector<std::pair<T, T>> found(static_cast<size_t>((n + counted_run - 1) / counted_run));
  parallel_for(n, counted_run, [&](int64_t begin, int64_t end) {
    found[static_cast<size_t>(begin / counted_run)] =
        FACULA_OF_ISA(extremes<T>)(x + begin, end - begin);
  });
  std::pair<T, T> all = found[0];
  for (const auto& [low, high] : found) {
    all.first = std::min(all.first, low);
    all.second = std::max(all.second, high);
  }
  return all;
}

// How far a number lies above another one that is not greater.
template <class T>
uint64_t distance_from(T low, T x) {
  return static_cast<uint64_t>(x) - static_cast<uint64_t>(low);
}

// to[k] += how often low + k occurs among n numbers from low to low + bins - 1. Parts are counted
// side by side where their tables are small. Numbers are users' memory, which may change: none
// is counted outside of the table.
template <class T>
void count_numbers(const T* x, int64_t n, T low, int64_t bins, int64_t* to) {
  constexpr int64_t most_parts = 16, most_entries = 1 << 16;
  const int64_t parts =
      bins * 2 > most_entries
          ? 1
          : std::clamp<int64_t>(std::min(n / counted_run, most_entries / bins), 1, most_parts);
  const int64_t length = (n + parts - 1) / parts;
  const auto last_bin = static_cast<uint64_t>(bins - 1);
  if (parts == 1) {
    for (int64_t i = 0; i < n; ++i) ++to[std::min(distance_from(low, x[i]), last_bin)];
    return;
  }
  std::vector<int64_t> counts(static_cast<size_t>(parts * bins));
  parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      int64_t* count = counts.data() + k * bins;
      const int64_t end = std::min(n, (k + 1) * length);
      for (int64_t i = k * length; i < end; ++i)
        ++count[std::min(distance_from(low, x[i]), last_bin)];
    }
  });
  for (int64_t k = 0; k < parts; ++k)
    for (int64_t b = 0; b < bins; ++b) to[b] += counts[static_cast<size_t>(k * bins + b)];
}

// --- unique

// The distinct values of integers that lie close together, by counting them.
template <class T>
TensorTriple unique_by_counts(const Tensor& in, T low, int64_t bins, bool inverse, bool counts,
                              IntSpan sizes) {
  const T* x = in.data<T>();
  const int64_t n = in.numel();
  std::vector<int64_t> table(static_cast<size_t>(bins));
  count_numbers(x, n, low, bins, table.data());
  const int64_t found = bins - std::count(table.begin(), table.end(), 0), none = 0;
  const Tensor values = empty_tensor(IntSpan(&found, 1), in.dtype());
  const Tensor places = empty_tensor(inverse ? sizes : IntSpan(&none, 1), DType::Int64);
  const Tensor often = empty_tensor(IntSpan(counts ? &found : &none, 1), DType::Int64);
  for (int64_t b = 0, k = 0; b < bins; ++b) {
    int64_t& entry = table[static_cast<size_t>(b)];
    if (entry == 0) continue;
    values.data<T>()[k] = static_cast<T>(static_cast<uint64_t>(low) + static_cast<uint64_t>(b));
    if (counts) often.data<int64_t>()[k] = entry;
    entry = k++;
  }
  if (!inverse) return {values, places, often};
  const auto last_bin = static_cast<uint64_t>(bins - 1);
  int64_t* to = places.data<int64_t>();
  parallel_for(n, counted_run, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = table[std::min(distance_from(low, x[i]), last_bin)];
  });
  return {values, places, often};
}

struct Groups {
  std::vector<int64_t> first;  // an element of each group
  Tensor inverse, counts;
};

// Groups neighbours in `order` (or in their own order) that same() holds to be equal.
template <class Same>
Groups group(int64_t n, const int64_t* order, bool inverse, bool counts, IntSpan inverse_sizes,
             Same&& same) {
  Groups g;
  g.inverse = empty_tensor(inverse ? inverse_sizes : IntSpan(IntVec{0}), DType::Int64);
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = order ? order[i] : i;
    if (i == 0 || !same(order ? order[i - 1] : i - 1, at)) {
      starts.push_back(i);
      g.first.push_back(at);
    }
    if (inverse) g.inverse.data<int64_t>()[at] = static_cast<int64_t>(g.first.size()) - 1;
  }
  const int64_t groups = static_cast<int64_t>(starts.size());
  const int64_t none = 0;
  g.counts = empty_tensor(IntSpan(counts ? &groups : &none, 1), DType::Int64);
  for (int64_t k = 0; counts && k < groups; ++k)
    g.counts.data<int64_t>()[k] = (k + 1 < groups ? starts[k + 1] : n) - starts[k];
  return g;
}

template <class T>
TensorTriple unique_of(const Tensor& in, const int64_t* order, bool inverse, bool counts,
                       IntSpan sizes) {
  const T* x = in.data<T>();
  Groups g = group(in.numel(), order, inverse, counts, sizes,
                   [&](int64_t a, int64_t b) { return x[a] == x[b]; });
  const int64_t n = static_cast<int64_t>(g.first.size());
  const Tensor values = empty_tensor(IntSpan(&n, 1), in.dtype());
  for (int64_t k = 0; k < n; ++k) values.data<T>()[k] = x[g.first[k]];
  return {values, g.inverse, g.counts};
}

template <class T>
TensorTriple unique_rows(const Tensor& in, bool consecutive, bool inverse, bool counts) {
  const int64_t n = in.sizes()[0], width = in.numel() / n;
  const T* x = in.data<T>();
  auto row = [&](int64_t i) { return x + i * width; };
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  if (!consecutive)
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::lexicographical_compare(row(a), row(a) + width, row(b), row(b) + width);
    });
  Groups g = group(n, order.data(), inverse, counts, IntSpan(&n, 1), [&](int64_t a, int64_t b) {
    return std::equal(row(a), row(a) + width, row(b));
  });
  IntVec sizes(in.sizes());
  sizes[0] = static_cast<int64_t>(g.first.size());
  const Tensor values = empty_tensor(sizes, in.dtype());
  for (int64_t k = 0; k < sizes[0]; ++k)
    std::memcpy(static_cast<void*>(values.data<T>() + k * width), row(g.first[k]),
                static_cast<size_t>(width) * sizeof(T));
  return {values, g.inverse, g.counts};
}

Tensor with_dim_first(const Tensor& t, int64_t dim) {
  IntVec sizes(t.sizes()), strides(t.strides());
  sizes.erase(static_cast<size_t>(dim));
  strides.erase(static_cast<size_t>(dim));
  sizes.insert(0, t.sizes()[dim]);
  strides.insert(0, t.strides()[dim]);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

Tensor with_dim_back(const Tensor& t, int64_t dim) {
  IntVec sizes(t.sizes()), strides(t.strides());
  const int64_t size = sizes[0], stride = strides[0];
  sizes.erase(0);
  strides.erase(0);
  sizes.insert(static_cast<size_t>(dim), size);
  strides.insert(static_cast<size_t>(dim), stride);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

template <class F>
void dispatch_distinct(DType d, const char* kernel, F&& f) {
  dispatch<FloatingTypes, IntegralTypes, bool, WideUnsignedTypes>(d, kernel, f);
}

TensorTriple nothing(const Tensor& self) {
  const int64_t zero = 0;
  return {empty_tensor(IntSpan(&zero, 1), self.dtype()),
          empty_tensor(IntSpan(&zero, 1), DType::Int64),
          empty_tensor(IntSpan(&zero, 1), DType::Int64)};
}

// --- histogram

template <class T>
struct Bins {
  T first, last, range, many;
  int64_t count;

  // -1 for what is outside. Every step rounds to T, as PyTorch's do: edges of half types fall where
  // they fall there.
  int64_t of(T v) const {
    if (!(v >= first && v <= last)) return -1;
    const T scaled = T(T(v - first) * many);
    return std::clamp<int64_t>(static_cast<int64_t>(T(scaled / range)), 0, count - 1);
  }
  // counts[k] += how many of n elements lie in bin k. Small tables are two in turns: neighbours
  // that share a bin need not wait for each other.
  void add(const T* x, int64_t n, int64_t* counts) const {
    constexpr int64_t most = 4096;
    if (count > most) {
      for (int64_t i = 0; i < n; ++i)
        if (const int64_t at = of(x[i]); at >= 0) ++counts[at];
      return;
    }
    std::vector<int64_t> odd(static_cast<size_t>(count + 1));
    std::vector<int64_t> even(static_cast<size_t>(count + 1));
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      ++even[static_cast<size_t>(of(x[i]) + 1)];
      ++odd[static_cast<size_t>(of(x[i + 1]) + 1)];
    }
    if (i < n) ++even[static_cast<size_t>(of(x[i]) + 1)];
    for (int64_t k = 0; k < count; ++k)
      counts[k] += even[static_cast<size_t>(k + 1)] + odd[static_cast<size_t>(k + 1)];
  }
};

template <class T>
void histogram(const Tensor& in, int64_t bins, double low, double high, const Tensor& out) {
  constexpr int64_t most_entries = 1 << 16;
  const T* x = in.data<T>();
  const int64_t n = in.numel();
  const T first = convert<T>(low), last = convert<T>(high);
  const Bins<T> rule{first, last, T(last - first), convert<T>(static_cast<double>(bins)), bins};
  const int64_t parts = std::clamp<int64_t>(std::min(n / counted_run, most_entries / bins), 1, 64);
  const int64_t length = (n + parts - 1) / parts;
  std::vector<int64_t> counts(static_cast<size_t>(parts * bins));
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      rule.add(x + k * length, std::min(length, n - k * length), counts.data() + k * bins);
  });
  for (int64_t k = 0; k < bins; ++k) {
    int64_t all = 0;
    for (int64_t part = 0; part < parts; ++part)
      all += counts[static_cast<size_t>(part * bins + k)];
    out.data<T>()[k] = convert<T>(static_cast<double>(all));
  }
}

struct Range {
  double low, high;
};

// The least and the greatest number, both NaN where one is NaN.
template <class T>
Range range_of(const Tensor& in) {
  const T* x = in.data<T>();
  const int64_t n = in.numel();
  std::vector<Range> found(static_cast<size_t>((n + counted_run - 1) / counted_run));
  parallel_for(n, counted_run, [&](int64_t begin, int64_t end) {
    T low = x[begin], high = x[begin];
    bool ordered = true;
    for (int64_t i = begin; i < end; ++i) {
      ordered &= x[i] == x[i];
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    const double nan = __builtin_nan("");
    found[static_cast<size_t>(begin / counted_run)] =
        ordered ? Range{static_cast<double>(low), static_cast<double>(high)} : Range{nan, nan};
  });
  Range all = found[0];
  for (const Range& r : found) {
    if (r.low != r.low) return r;
    all.low = std::min(all.low, r.low);
    all.high = std::max(all.high, r.high);
  }
  return all;
}

}  // namespace

void search_sorted(const Tensor& sorted, const Tensor& values, bool right, const Tensor& sorter,
                   const Tensor& out) {
  dispatch<FloatingTypes, IntegralTypes>(
      sorted.dtype(), "searchsorted_out_cpu", [&]<class T>(Type<T>) {
        if (out.dtype() == DType::Int32)
          search_rows<T, int32_t>(sorted, values, right, sorter, out);
        else
          search_rows<T, int64_t>(sorted, values, right, sorter, out);
      });
}

TensorTriple unique_values(const Tensor& self, bool consecutive, bool inverse, bool counts,
                           const char* op) {
  const Tensor in = contiguous_values(self);
  const int64_t n = in.numel();
  const Tensor flat = alias_tensor(in, IntSpan(&n, 1), IntVec{1}, in.storage_offset());
  TensorTriple result;
  Tensor order;
  dispatch_distinct(in.dtype(), op, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!consecutive && n > 0) {
        const auto [low, high] = extremes_of(in.data<T>(), n);
        // A table of no more entries than this costs less than sorting.
        if (const uint64_t above = distance_from(low, high); above < static_cast<uint64_t>(n)) {
          result = unique_by_counts<T>(in, low, static_cast<int64_t>(above) + 1, inverse, counts,
                                       self.sizes());
          return;
        }
      }
    }
    if (!consecutive) order = order_of(flat);
    result = unique_of<T>(flat, consecutive ? nullptr : order.data<int64_t>(), inverse, counts,
                          self.sizes());
  });
  return result;
}

TensorTriple unique_slices(const Tensor& self, int64_t dim, bool consecutive, bool inverse,
                           bool counts, const char* op) {
  const int64_t d = wrap_dim(dim, self.dim());
  int64_t zeros = 0;
  for (int64_t s : self.sizes()) zeros += s == 0;
  if (self.dim() == 0) return unique_values(self, consecutive, inverse, counts, op);
  if (self.sizes()[d] == 0) {
    check(zeros == 1, "unique_dim(): at most one dimension may have size 0; got ", zeros);
    TensorTriple none = nothing(self);
    std::get<0>(none) = empty_tensor(self.sizes(), self.dtype());
    return none;
  }
  check(zeros == 0, "unique_dim(): a dimension other than dim must not have size 0");
  const Tensor in = contiguous_values(with_dim_first(self, d));
  TensorTriple result;
  dispatch_distinct(in.dtype(), op, [&]<class T>(Type<T>) {
    result = unique_rows<T>(in, consecutive, inverse, counts);
  });
  std::get<0>(result) = with_dim_back(std::get<0>(result), d);
  return result;
}

template <class T, class W>
static Tensor counted(const Tensor& in, const Tensor& weights, int64_t bins, DType dtype) {
  const Tensor out = empty_tensor(IntSpan(&bins, 1), dtype);
  fill(out, 0);
  const T* x = in.data<T>();
  const W* w = weights.defined() ? weights.data<W>() : nullptr;
  W* to = out.data<W>();
  const int64_t n = in.numel();
  if (w)
    for (int64_t i = 0; i < n; ++i) to[x[i]] += w[i];
  else if constexpr (std::is_same_v<W, int64_t>)
    count_numbers(x, n, T(0), bins, to);
  return out;
}

void check_bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check(minlength >= 0, "minlength should be >= 0");
  if (self.dim() == 1 && self.numel() == 0) return;
  if (!is_integral(self.dtype(), false)) not_implemented_for("bincount_cpu", self.dtype());
  check(self.dim() == 1, "bincount(): input must have 1 dimension; got ", self.dim());
  check(!weights.defined() || (weights.dim() == 1 && weights.numel() == self.numel()),
        "bincount(): weights must be 1-D of the same length as input, ", self.numel());
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  if (self.numel() == 0) {
    const Tensor out = empty_tensor(IntSpan(&minlength, 1), DType::Int64);
    fill(out, 0);
    return out;
  }
  const Tensor in = contiguous(self);
  Tensor w;
  if (weights.defined())
    w = contiguous(weights.dtype() == DType::Float32 ? weights
                                                     : converted(weights, DType::Float64));
  Tensor out;
  dispatch<IntegralTypes>(in.dtype(), "bincount_cpu", [&]<class T>(Type<T>) {
    const auto [low, high] = extremes_of(in.data<T>(), in.numel());
    check(!(low < T(0)), "bincount(): numbers of input must not be negative");
    check(static_cast<int64_t>(high) < INT64_MAX, "bincount(): numbers of input must be below ",
          INT64_MAX, "; got ", high);
    const int64_t bins = std::max(static_cast<int64_t>(high) + 1, minlength);
    if (!w.defined())
      out = counted<T, int64_t>(in, w, bins, DType::Int64);
    else if (w.dtype() == DType::Float32)
      out = counted<T, float>(in, w, bins, DType::Float32);
    else
      out = counted<T, double>(in, w, bins, DType::Float64);
  });
  return out;
}

void histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max,
           const Tensor& out) {
  const Tensor in = contiguous(self);
  const bool own_range = min.to<double>() == max.to<double>();
  check_type(!own_range || !is_complex(in.dtype()), "aminmax not implemented for ",
             info(in.dtype()).legacy_name);
  dispatch<FloatingTypes>(in.dtype(), "histogram_cpu", [&]<class T>(Type<T>) {
    Range r{min.to<double>(), max.to<double>()};
    if (r.low == r.high && in.numel() > 0) r = range_of<T>(in);
    check(std::isfinite(r.low) && std::isfinite(r.high), "torch.histc: range of [", r.low, ", ",
          r.high, "] is not finite");
    check(r.low <= r.high, "histc(): min must not be above max; got ", r.low, " and ", r.high);
    if (r.low == r.high) r = {r.low - 1, r.high + 1};
    histogram<T>(in, bins, r.low, r.high, out);
  });
}

void is_in(const Tensor& elements, const Tensor& test_elements, bool invert, const Tensor& out) {
  const int64_t n = test_elements.numel();
  bool* to = out.data<bool>();
  dispatch_distinct(elements.dtype(), "isin_cpu", [&]<class T>(Type<T>) {
    const std::unique_ptr<T[]> tests(new T[static_cast<size_t>(n)]);
    const T* from = test_elements.data<T>();
    T* end = std::copy_if(from, from + n, tests.get(), [](T v) { return v == v; });
    std::sort(tests.get(), end);
    const T* x = elements.data<T>();
    parallel_for(elements.numel(), 4096, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        to[i] = (x[i] == x[i] && std::binary_search(tests.get(), end, x[i])) != invert;
    });
  });
}

}  // namespace facula::cpu
