// Short rows of neighbouring elements: one vector of accumulators each.
#pragma once
#include <type_traits>

#include "kernels/cpu/simd/accumulate.h"

namespace facula::cpu::FACULA_ISA {

// As many as 64 bytes of accumulators hold, whatever the instruction set: that orders the sums.
template <class Op>
inline constexpr int64_t group_lanes = 64 / static_cast<int64_t>(sizeof(typename Op::Acc));
template <class Op>
inline constexpr bool groups_rows =
    !Op::costly && !Op::centered && std::is_arithmetic_v<typename Op::Acc> &&
    sizeof(typename Op::Acc) >= 4 && sizeof(typename Op::In) >= 2 &&
    (std::is_arithmetic_v<typename Op::In> ||
     std::is_floating_point_v<accumulate_t<typename Op::In>>);

// The lanes of one row of at least as many elements. Loops over lanes stay loops until GCC looks
// for vectors.
template <class Op>
[[gnu::always_inline]] inline void lanes_of_row(const Op& op, const typename Op::In* x, int64_t n,
                                                typename Op::Acc* to) {
  constexpr int64_t lanes = group_lanes<Op>;
  typename Op::Acc acc[lanes];
#pragma GCC unroll 1
  for (int64_t i = 0; i < lanes; ++i) acc[i] = op.step(op.init(), x[i], typename Op::Acc());
  int64_t at = lanes;
  for (; at + lanes <= n; at += lanes) {
#pragma GCC unroll 1
    for (int64_t i = 0; i < lanes; ++i) acc[i] = op.step(acc[i], x[at + i], typename Op::Acc());
  }
  // The last lanes of the row hold what is left, behind elements that are there already.
  if (const int64_t known = lanes - (n - at); known < lanes) {
    const typename Op::In* end = x + n - lanes;
#pragma GCC unroll 1
    for (int64_t i = 0; i < lanes; ++i) {
      const typename Op::Acc next = op.step(acc[i], end[i], typename Op::Acc());
      acc[i] = i < known ? acc[i] : next;
    }
  }
#pragma GCC unroll 1
  for (int64_t i = 0; i < lanes; ++i) to[i] = acc[i];
}

// Brings all lanes into the first, halves onto halves, by loops that become vectors.
template <int64_t width, class Op>
[[gnu::always_inline]] inline void fold_lanes(const Op& op, typename Op::Acc* acc) {
  typename Op::Acc next[width];
#pragma GCC unroll 1
  for (int64_t i = 0; i < width; ++i) next[i] = op.combine(acc[i], acc[i + width]);
#pragma GCC unroll 1
  for (int64_t i = 0; i < width; ++i) acc[i] = next[i];
  if constexpr (width > 1) fold_lanes<width / 2>(op, acc);
}

// to = the results of rows of n elements, `step` apart. Memory is asked for `ahead` bytes further
// on where rows are long enough for that to pay.
template <class Op>
[[gnu::noinline]] void reduce_rows(const Op& op, const typename Op::In* x, int64_t step, int64_t n,
                                   int64_t rows, int64_t ahead, typename Op::Acc* to) {
  constexpr int64_t lanes = group_lanes<Op>, line = 64, least = 4 * line;
  const int64_t bytes = n * static_cast<int64_t>(sizeof(typename Op::In));
  const bool asks = ahead != 0 && bytes >= least;
  for (int64_t r = 0; r < rows; ++r, x += step) {
    for (int64_t l = 0; asks && l < bytes; l += line)
      __builtin_prefetch(reinterpret_cast<const char*>(x) + ahead + l);
    typename Op::Acc acc[lanes];
    lanes_of_row(op, x, n, acc);
    fold_lanes<lanes / 2>(op, acc);
    to[r] = acc[0];
  }
}

}  // namespace facula::cpu::FACULA_ISA
