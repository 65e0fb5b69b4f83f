#include "kernels/cpu/embedding/rows.h"

#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// `vectors` vectors of columns, from the first one on, summed in registers.
template <class T, int vectors, bool scaled, bool padded>
void sum_vectors(const TableRows<T>& rows, int64_t first, T* to) {
  using S = Simd<T>;
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  constexpr int64_t ahead = vectors <= 2 ? 24 : 12;  // distance of the prefetch in rows
  typename S::Vec sum[vectors] = {};
  const int64_t known = rows.count + rows.ahead - ahead;
  const bool between_lines =
      rows.width % line != 0 || reinterpret_cast<uintptr_t>(rows.table + first) % 64 != 0;
  for (int64_t i = 0; i < rows.count; ++i) {
    if (i < known) {
      const T* next = rows.table + rows.numbers[i + ahead] * rows.width + first;
#pragma GCC unroll 8
      for (int64_t l = 0; l < vectors * S::lanes; l += line) __builtin_prefetch(next + l);
      if (between_lines) __builtin_prefetch(next + vectors * S::lanes - 1);
    }
    if (padded && rows.numbers[i] == rows.padding) continue;
    const T* from = rows.table + rows.numbers[i] * rows.width + first;
    const auto scale = S::broadcast(scaled ? rows.scales[i] : T(1));
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j)
      sum[j] += scaled ? S::load(from + j * S::lanes) * scale : S::load(from + j * S::lanes);
  }
#pragma GCC unroll 8
  for (int j = 0; j < vectors; ++j) S::store(to + first + j * S::lanes, sum[j]);
}
template <class T, int vectors>
void sum_block(const TableRows<T>& rows, int64_t first, T* to) {
  if (rows.scales) return sum_vectors<T, vectors, true, true>(rows, first, to);
  if (rows.padding >= 0) return sum_vectors<T, vectors, false, true>(rows, first, to);
  sum_vectors<T, vectors, false, false>(rows, first, to);
}

// Columns from the first one on, summed in memory.
template <class T, class A>
void sum_columns(const TableRows<T>& rows, int64_t first, A* to) {
  for (int64_t k = first; k < rows.width; ++k) to[k] = A(0);
  for (int64_t i = 0; i < rows.count; ++i) {
    if (rows.numbers[i] == rows.padding) continue;
    const T* from = rows.table + rows.numbers[i] * rows.width;
    const A scale = rows.scales ? static_cast<A>(rows.scales[i]) : A(1);
    for (int64_t k = first; k < rows.width; ++k) to[k] += static_cast<A>(from[k]) * scale;
  }
}

// Whether a value is taken from the row of this place, in a vector's width: by masks.
template <class T, class A>
[[gnu::always_inline]] inline void take_greater(const T* from, int32_t place, int64_t n, A* best,
                                                int32_t* at) {
  for (int64_t k = 0; k < n; ++k) {
    const A value = static_cast<A>(from[k]);
    const bool better = value > best[k];
    const int32_t take = -static_cast<int32_t>(better);
    best[k] = better ? value : best[k];
    at[k] = (at[k] & ~take) | (place & take);
  }
}

}  // namespace

template <class T>
int64_t max_rows(const TableRows<T>& rows, accumulate_t<T>* to, int64_t* chosen) {
  constexpr int64_t most = 256;  // columns that are walked at a time
  int64_t first = 0, met = 0;    // the first row that counts
  while (first < rows.count && rows.numbers[first] == rows.padding) ++first;
  if (first == rows.count) {
    for (int64_t k = 0; k < rows.width; ++k) to[k] = 0;
    return 0;
  }
  for (int64_t i = first; i < rows.count; ++i) met += rows.numbers[i] != rows.padding;
  for (int64_t begin = 0; begin < rows.width; begin += most) {
    const int64_t n = rows.width - begin < most ? rows.width - begin : most;
    int32_t at[most] = {};
    const T* from = rows.table + rows.numbers[first] * rows.width + begin;
    for (int64_t k = 0; k < n; ++k) to[begin + k] = static_cast<accumulate_t<T>>(from[k]);
    for (int64_t i = first + 1; i < rows.count; ++i)
      if (rows.numbers[i] != rows.padding)
        take_greater(rows.table + rows.numbers[i] * rows.width + begin,
                     static_cast<int32_t>(i - first), n, to + begin, at);
    for (int64_t k = 0; k < n; ++k) chosen[begin + k] = rows.numbers[first + at[k]];
  }
  return met;
}

template <class T>
int64_t sum_rows(const TableRows<T>& rows, accumulate_t<T>* to) {
  int64_t met = rows.padding < 0 ? rows.count : 0, done = 0;
  for (int64_t i = 0; rows.padding >= 0 && i < rows.count; ++i)
    met += rows.numbers[i] != rows.padding;
  if constexpr (std::is_same_v<T, accumulate_t<T>>) {
    constexpr int64_t lanes = Simd<T>::lanes;
    for (; done + 4 * lanes <= rows.width; done += 4 * lanes) sum_block<T, 4>(rows, done, to);
    if (done + 2 * lanes <= rows.width) sum_block<T, 2>(rows, done, to), done += 2 * lanes;
    if (done + lanes <= rows.width) sum_block<T, 1>(rows, done, to), done += lanes;
  }
  if (done < rows.width) sum_columns(rows, done, to);
  const auto share = static_cast<accumulate_t<T>>(met);
  for (int64_t k = 0; rows.mean && met > 1 && k < rows.width; ++k) to[k] /= share;
  return met;
}

bool are_rows(const int64_t* numbers, int64_t n, int64_t rows) {
  int64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) outside |= (numbers[i] < 0) | (numbers[i] >= rows);
  return outside == 0;
}

template <class A>
void add_row(const A* from, A factor, int64_t width, A* to) {
  for (int64_t k = 0; k < width; ++k) to[k] += from[k] * factor;
}

template int64_t sum_rows(const TableRows<float>&, float*);
template int64_t sum_rows(const TableRows<double>&, double*);
template int64_t sum_rows(const TableRows<Half>&, float*);
template int64_t sum_rows(const TableRows<BFloat16>&, float*);
template int64_t max_rows(const TableRows<float>&, float*, int64_t*);
template int64_t max_rows(const TableRows<double>&, double*, int64_t*);
template int64_t max_rows(const TableRows<Half>&, float*, int64_t*);
template int64_t max_rows(const TableRows<BFloat16>&, float*, int64_t*);
template void add_row(const float*, float, int64_t, float*);
template void add_row(const double*, double, int64_t, double*);

}  // namespace facula::cpu::FACULA_ISA
