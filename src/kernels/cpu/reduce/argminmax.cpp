// Where a minimum or maximum is: the first of equal values, a NaN before all.
#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/lines.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/reduce/reduce.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t tile = 256;

template <class T>
using Compared =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class A, bool Most>
inline bool beats(A x, A best) {
  const bool more = Most ? x > best : x < best;
  if constexpr (std::is_floating_point_v<A>) return (more | (x != x)) & (best == best);
  return more;
}

// Columns are walked side by side.
template <class T, bool Most>
void columns(const T* x, int64_t length, int64_t step, int64_t width, T* values, int64_t* indices) {
  using A = Compared<T>;
  A best[tile];
  int64_t at[tile];
  for (int64_t c = 0; c < width; ++c) {
    best[c] = convert<A>(x[c]);
    at[c] = 0;
  }
  for (int64_t i = 1; i < length; ++i) {
    const T* row = x + i * step;
    for (int64_t c = 0; c < width; ++c) {
      const A v = convert<A>(row[c]);
      const bool take = beats<A, Most>(v, best[c]);
      best[c] = take ? v : best[c];
      at[c] = take ? i : at[c];
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    if (values) values[c] = convert<T>(best[c]);
    indices[c] = at[c];
  }
}

// One line: lanes find the value, a search finds its first place.
template <class T, bool Most>
void row(const T* x, int64_t length, T* value, int64_t* index) {
  using A = Compared<T>;
  constexpr int lanes = 32;
  A best = convert<A>(x[0]);
  int64_t i = 1;
  if (length > 2 * lanes) {
    A lane[lanes];
    for (int k = 0; k < lanes; ++k) lane[k] = convert<A>(x[k]);
    for (i = lanes; i + lanes <= length; i += lanes)
      for (int k = 0; k < lanes; ++k) {
        const A v = convert<A>(x[i + k]);
        const A more = (Most ? v > lane[k] : v < lane[k]) ? v : lane[k];
        lane[k] = v != v ? v : more;
      }
    for (int k = 0; k < lanes; ++k) best = beats<A, Most>(lane[k], best) ? lane[k] : best;
  }
  for (; i < length; ++i) {
    const A v = convert<A>(x[i]);
    best = beats<A, Most>(v, best) ? v : best;
  }
  int64_t at = 0;
  if constexpr (std::is_floating_point_v<A>) {
    if (best != best)
      while (convert<A>(x[at]) == convert<A>(x[at])) ++at;
    else
      while (convert<A>(x[at]) != best) ++at;
  } else {
    while (x[at] != best) ++at;
  }
  if (value) *value = x[at];
  *index = at;
}

constexpr int64_t short_length = 48;

// Short lines that follow each other are walked side by side, too.
template <class T, bool Most>
void short_rows(const T* x, int64_t length, int64_t rows, T* values, int64_t* indices) {
  using A = Compared<T>;
  A best[tile];
  int32_t at[tile];
  for (int64_t r = 0; r < rows; ++r) {
    best[r] = convert<A>(x[r * length]);
    at[r] = 0;
  }
  for (int32_t i = 1; i < length; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      const A v = convert<A>(x[r * length + i]);
      const bool take = beats<A, Most>(v, best[r]);
      best[r] = take ? v : best[r];
      at[r] = take ? i : at[r];
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (values) values[r] = convert<T>(best[r]);
    indices[r] = at[r];
  }
}

template <class T, bool Most>
void find_in_short_rows(const T* x, int64_t length, int64_t rows, T* values, int64_t* indices) {
  const int64_t tiles = (rows + tile - 1) / tile;
  const int64_t grain = 16384 / (tile * length) + 1;
  parallel_for(tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * tile, count = first + tile <= rows ? tile : rows - first;
      short_rows<T, Most>(x + first * length, length, count, values ? values + first : nullptr,
                          indices + first);
    }
  });
}

template <class T, bool Most>
void find(const T* x, const Lines& l, T* values, int64_t* indices) {
  if (l.inner == 1 && l.length <= short_length && l.outer >= 16)
    return find_in_short_rows<T, Most>(x, l.length, l.outer, values, indices);
  const int64_t width = l.inner < tile ? l.inner : tile, tiles = (l.inner + width - 1) / width;
  const int64_t work = l.length * width, grain = work >= 16384 ? 1 : 16384 / (work > 0 ? work : 1);
  parallel_for(l.outer * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t o = t / tiles, c = t % tiles * width;
      const T* from = x + o * l.length * l.inner + c;
      const int64_t to = o * l.inner + c;
      if (l.inner == 1)
        row<T, Most>(from, l.length, values ? values + to : nullptr, indices + to);
      else
        columns<T, Most>(from, l.length, l.inner, c + width <= l.inner ? width : l.inner - c,
                         values ? values + to : nullptr, indices + to);
    }
  });
}

template <bool Most>
void find(const Tensor& self, std::optional<int64_t> dim, const Tensor* values,
          const Tensor& indices, const char* name) {
  const Tensor in = contiguous_values(self);
  const int64_t flat = in.numel();
  const Lines lines =
      dim ? Lines(in.sizes(), wrap_dim(*dim, in.dim())) : Lines(IntSpan(&flat, 1), 0);
  if (lines.count() == 0) return;
  auto run = [&]<class T>(Type<T>) {
    find<T, Most>(in.data<T>(), lines, values ? values->data<T>() : nullptr,
                  indices.data<int64_t>());
  };
  dispatch<FloatingTypes, IntegralTypes, bool>(in.dtype(), name, run);
}

}  // namespace

void min_dim(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  find<false>(self, dim, &values, indices, "min_cpu");
}
void max_dim(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  find<true>(self, dim, &values, indices, "max_cpu");
}
void argmin(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  find<false>(self, dim, nullptr, out, "argmin_cpu");
}
void argmax(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  find<true>(self, dim, nullptr, out, "argmax_cpu");
}

}  // namespace facula::cpu::FACULA_ISA
