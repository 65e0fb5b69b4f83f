// Where a minimum or maximum is: the first of equal values, a NaN before all. Tables of that are
// instantiated once per instruction set, by generated files.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/reduce/reduction.h"

namespace facula::cpu::FACULA_ISA {
namespace arg {

constexpr int64_t tile = 256;

template <class A, bool Most>
inline bool beats(A x, A best) {
  const bool more = Most ? x > best : x < best;
  if constexpr (std::is_floating_point_v<A>) return (more | (x != x)) & (best == best);
  return more;
}

// Columns are walked side by side.
template <class T, bool Most>
void columns(const T* x, int64_t length, int64_t step, int64_t width, T* values, int64_t* indices) {
  using A = accumulate_t<T>;
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
  using A = accumulate_t<T>;
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
  using A = accumulate_t<T>;
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

template <class T, bool Most>
void find_in_lines(const void* in, const Lines& lines, void* values, int64_t* indices) {
  find<T, Most>(static_cast<const T*>(in), lines, static_cast<T*>(values), indices);
}

template <class F, class T>
constexpr void put(ArgReductionTable& t, Type<T>) {
  t.by_dtype[loop_slot(dtype_of<T>)] = &find_in_lines<T, F::most>;
}
template <class F, class... T>
constexpr void put(ArgReductionTable& t, Type<TypeSet<T...>>) {
  (put<F>(t, Type<T>()), ...);
}

template <class F>
constexpr ArgReductionTable make_table() {
  ArgReductionTable t;
  t.kernel = F::kernel;
  put<F>(t, Type<typename F::Elements>());
  return t;
}

}  // namespace arg

template <class F>
constinit const ArgReductionTable ArgReductionLoops<F>::table = arg::make_table<F>();

}  // namespace facula::cpu::FACULA_ISA
