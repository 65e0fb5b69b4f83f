#include "kernels/cpu/embedding/rows.h"

#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class T>
[[gnu::always_inline]] inline bool is_row(const TableBags<T>& bags, int64_t number) {
  return static_cast<uint64_t>(number) < static_cast<uint64_t>(bags.rows);
}

// Asks for what is read of a row some steps ahead: its number is not tested, and nothing is read.
template <class T>
[[gnu::always_inline]] inline void ask_for(const TableBags<T>& bags, int64_t number, int64_t first,
                                           int64_t columns, bool between_lines) {
  constexpr uint64_t line = 64;
  const uint64_t at = static_cast<uint64_t>(number) * static_cast<uint64_t>(bags.width) +
                      static_cast<uint64_t>(first);
  const uint64_t begin = reinterpret_cast<uint64_t>(bags.table) + at * sizeof(T);
  const uint64_t bytes = static_cast<uint64_t>(columns) * sizeof(T);
#pragma GCC unroll 8
  for (uint64_t l = 0; l < bytes; l += line)
    __builtin_prefetch(reinterpret_cast<const char*>(begin + l));
  if (between_lines) __builtin_prefetch(reinterpret_cast<const char*>(begin + bytes - 1));
}

// What the sums of a bag of so many rows are divided by.
template <class T, class A>
[[gnu::always_inline]] inline A share_of(const TableBags<T>& bags, int64_t met) {
  return bags.mean && met > 1 ? static_cast<A>(met) : A(1);
}

// `vectors` vectors of columns, from the first one on, summed in registers, bag after bag. The bags
// are a copy, since what is stored might be theirs for all that the compiler knows.
template <class T, int vectors, bool scaled, bool padded>
bool sum_vectors(const TableBags<T> bags, int64_t first, T* to) {
  using S = Simd<T>;
  constexpr int64_t columns = vectors * S::lanes, line = 64 / static_cast<int64_t>(sizeof(T));
  constexpr int64_t ahead = vectors <= 2 ? 24 : 12;  // distance of the prefetch in rows
  const int64_t* const numbers = bags.numbers;
  const T* const table = bags.table + first;
  const bool between_lines = bags.width % line != 0 || reinterpret_cast<uintptr_t>(table) % 64 != 0;
  const int64_t known = bags.starts[bags.count] - ahead;
  int64_t i = bags.starts[0];
  for (int64_t b = 0; b < bags.count; ++b) {
    typename S::Vec sum[vectors] = {};
    const int64_t end = bags.starts[b + 1];
    int64_t met = end - i;
    for (; i < end; ++i) {
      if (i < known) ask_for(bags, numbers[i + ahead], first, columns, between_lines);
      const int64_t row = numbers[i];
      if (!is_row(bags, row)) [[unlikely]]
        return false;
      if (padded && row == bags.padding) {
        --met;
        continue;
      }
      const T* from = table + row * bags.width;
      const auto scale = S::broadcast(scaled ? bags.scales[i] : T(1));
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j)
        sum[j] += scaled ? S::load(from + j * S::lanes) * scale : S::load(from + j * S::lanes);
    }
    if (const T share = share_of<T, T>(bags, met); share != T(1)) {
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) sum[j] /= S::broadcast(share);
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) S::store(to + b * bags.width + first + j * S::lanes, sum[j]);
  }
  return true;
}
template <class T, int vectors>
bool sum_block(const TableBags<T>& bags, int64_t first, T* to) {
  if (bags.scales) return sum_vectors<T, vectors, true, true>(bags, first, to);
  if (bags.padding >= 0) return sum_vectors<T, vectors, false, true>(bags, first, to);
  return sum_vectors<T, vectors, false, false>(bags, first, to);
}

// Columns from the first one on, summed in memory.
template <class T, class A>
bool sum_columns(const TableBags<T>& bags, int64_t first, A* to) {
  for (int64_t b = 0; b < bags.count; ++b, to += bags.width) {
    for (int64_t k = first; k < bags.width; ++k) to[k] = A(0);
    int64_t met = 0;
    for (int64_t i = bags.starts[b]; i < bags.starts[b + 1]; ++i) {
      const int64_t row = bags.numbers[i];
      if (!is_row(bags, row)) [[unlikely]]
        return false;
      if (row == bags.padding) continue;
      ++met;
      const T* from = bags.table + row * bags.width;
      const A scale = bags.scales ? static_cast<A>(bags.scales[i]) : A(1);
      for (int64_t k = first; k < bags.width; ++k) to[k] += static_cast<A>(from[k]) * scale;
    }
    if (const A share = share_of<T, A>(bags, met); share != A(1))
      for (int64_t k = first; k < bags.width; ++k) to[k] /= share;
  }
  return true;
}

template <class T>
bool sum_all_columns(const TableBags<T>& bags, accumulate_t<T>* to) {
  int64_t done = 0;
  bool hold = true;
  if constexpr (std::is_same_v<T, accumulate_t<T>>) {
    constexpr int64_t lanes = Simd<T>::lanes;
    for (; hold && done + 4 * lanes <= bags.width; done += 4 * lanes)
      hold = sum_block<T, 4>(bags, done, to);
    if (hold && done + 2 * lanes <= bags.width)
      hold = sum_block<T, 2>(bags, done, to), done += 2 * lanes;
    if (hold && done + lanes <= bags.width) hold = sum_block<T, 1>(bags, done, to), done += lanes;
  }
  return hold && (done == bags.width && done > 0 ? true : sum_columns(bags, done, to));
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
int64_t max_rows(const TableBags<T>& bag, accumulate_t<T>* to, int64_t* chosen) {
  constexpr int64_t most = 256;  // columns that are walked at a time
  const int64_t *numbers = bag.numbers + bag.starts[0], count = bag.starts[1] - bag.starts[0];
  int64_t first = -1, met = 0;  // the first row that counts
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = numbers[i];
    if (!is_row(bag, row)) return -1;
    if (row != bag.padding && met++ == 0) first = i;
  }
  for (int64_t k = 0; met == 0 && k < bag.width; ++k) to[k] = 0;
  for (int64_t begin = 0; met > 0 && begin < bag.width; begin += most) {
    const int64_t n = bag.width - begin < most ? bag.width - begin : most;
    int32_t at[most] = {};
    for (int64_t i = first; i < count; ++i) {
      const int64_t row = numbers[i];
      if (!is_row(bag, row)) return -1;
      const T* from = bag.table + row * bag.width + begin;
      if (i == first)
        for (int64_t k = 0; k < n; ++k) to[begin + k] = static_cast<accumulate_t<T>>(from[k]);
      else if (row != bag.padding)
        take_greater(from, static_cast<int32_t>(i - first), n, to + begin, at);
    }
    for (int64_t k = 0; k < n; ++k) chosen[begin + k] = numbers[first + at[k]];
  }
  return met;
}

template <class T>
bool sum_bags(const TableBags<T>& bags, accumulate_t<T>* to, int64_t* sizes) {
  if (!sum_all_columns(bags, to)) return false;
  for (int64_t b = 0; b < bags.count; ++b) {
    int64_t met = bags.starts[b + 1] - bags.starts[b];
    for (int64_t i = bags.starts[b]; bags.padding >= 0 && i < bags.starts[b + 1]; ++i)
      met -= bags.numbers[i] == bags.padding;
    sizes[b] = met;
  }
  return true;
}

bool are_rows(const int64_t* numbers, int64_t n, int64_t rows) {
  int64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) outside |= (numbers[i] < 0) | (numbers[i] >= rows);
  return outside == 0;
}

template <class A>
void add_rows(const RowSums<A>& rows, A* to) {
  constexpr int64_t ahead = 8;  // distance of the prefetch in rows
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(A)), most = 8 * line;
  const int64_t width = rows.width;
  for (int64_t i = 0; i < rows.count; ++i) {
    if (i + ahead < rows.count) {
      const int64_t next = rows.places[i + ahead];
      for (int64_t l = 0; l < (width < most ? width : most); l += line) {
        __builtin_prefetch(rows.from + next * width + l);
        __builtin_prefetch(to + rows.numbers[next] * width + l, 1);
      }
    }
    const int64_t place = rows.places[i], row = rows.numbers[place];
    if (row == rows.padding) continue;
    const A* __restrict from = rows.from + place * width;
    A* __restrict sum = to + row * width;
    const A share = rows.shares ? A(1) / static_cast<A>(rows.shares[row]) : A(1);
    for (int64_t k = 0; k < width; ++k) sum[k] += from[k] * share;
  }
}

template bool sum_bags(const TableBags<float>&, float*, int64_t*);
template bool sum_bags(const TableBags<double>&, double*, int64_t*);
template bool sum_bags(const TableBags<Half>&, float*, int64_t*);
template bool sum_bags(const TableBags<BFloat16>&, float*, int64_t*);
template int64_t max_rows(const TableBags<float>&, float*, int64_t*);
template int64_t max_rows(const TableBags<double>&, double*, int64_t*);
template int64_t max_rows(const TableBags<Half>&, float*, int64_t*);
template int64_t max_rows(const TableBags<BFloat16>&, float*, int64_t*);
template void add_rows(const RowSums<float>&, float*);
template void add_rows(const RowSums<double>&, double*);

}  // namespace facula::cpu::FACULA_ISA
