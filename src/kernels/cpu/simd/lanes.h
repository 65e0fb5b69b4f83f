// What row kernels (softmax, losses) share: sums over a fixed number of virtual lanes, so that
// every instruction set and thread count adds in the same order.
#pragma once
#include <type_traits>

#include "core/dtype.h"
#include "core/error.h"
#include "kernels/cpu/loop/scratch.h"
#include "kernels/cpu/simd/accumulate.h"

namespace facula::cpu::FACULA_ISA {

inline constexpr int64_t lanes = 16;
inline constexpr int64_t longest_run = 4096;  // terms that one lane-wise loop adds up

// Numbers that one register holds.
#if defined(__AVX512F__)
template <class A>
inline constexpr int native_lanes = 64 / sizeof(A);
#elif defined(__AVX2__)
template <class A>
inline constexpr int native_lanes = 32 / sizeof(A);
#else
template <class A>
inline constexpr int native_lanes = 16 / sizeof(A);
#endif

// Some neighbouring lanes as one vector, so that the compiler need not find them.
template <class A, int count>
struct LaneVector {
  typedef A type __attribute__((vector_size(count * sizeof(A))));
  [[gnu::always_inline]] static type load(const A* from) {
    type v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
};

// One value of all lanes, halves onto halves; combine(a, b) takes vectors and numbers.
template <class A, class Combine>
[[gnu::always_inline]] inline A fold_with(const A* acc, Combine&& combine) {
  using Eight = LaneVector<A, 8>;
  const auto eight = combine(Eight::load(acc), Eight::load(acc + 8));
  using Four = LaneVector<A, 4>;
  A rest[8];
  __builtin_memcpy(rest, &eight, sizeof rest);
  const auto four = combine(Four::load(rest), Four::load(rest + 4));
  return combine(combine(four[0], four[2]), combine(four[1], four[3]));
}

// The sum of all lanes.
template <class A>
[[gnu::always_inline]] inline A fold(const A* acc) {
  return fold_with(acc, [](auto a, auto b) { return a + b; });
}

// The sum of numbers that are not many, lane by lane; in registers of this set, since the compiler
// keeps wider vectors in memory.
template <class A>
[[gnu::always_inline]] inline A sum_by_lanes(const A* x, int64_t n) {
  constexpr int width = native_lanes<A> < lanes ? native_lanes<A> : static_cast<int>(lanes);
  constexpr int parts = static_cast<int>(lanes) / width;
  using V = LaneVector<A, width>;
  typename V::type sum[parts] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
#pragma GCC unroll 16
    for (int p = 0; p < parts; ++p) sum[p] += V::load(x + i + p * width);
  }
  A acc[lanes];
  __builtin_memcpy(acc, sum, sizeof acc);
  for (int64_t l = 0; i + l < n; ++l) acc[l] += x[i + l];
  return fold(acc);
}

// Calls body(i) for i < n: whole runs of lanes, which become vectors without a remainder, then the
// rest one by one.
template <class Body>
[[gnu::always_inline]] inline void by_lanes(int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t l = 0; l < lanes; ++l) body(i + l);
  for (; i < n; ++i) body(i);
}

// Sum of term(i) over a range that is not long, lane by lane.
template <class A, class Term>
[[gnu::always_inline]] inline A lane_run(int64_t begin, int64_t end, const Term& term) {
  A acc[lanes] = {};
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes)
    for (int64_t l = 0; l < lanes; ++l) acc[l] += term(i + l);
  for (int64_t l = 0; i + l < end; ++l) acc[l] += term(i + l);
  return fold(acc);
}

template <class A, class Term>
[[gnu::noinline]] A long_lane_sum(int64_t begin, int64_t end, const Term& term) {
  if (end - begin <= longest_run) return lane_run<A>(begin, end, term);
  const int64_t half = (end - begin) / 2, middle = begin + (half + lanes - 1) / lanes * lanes;
  return long_lane_sum<A>(begin, middle, term) + long_lane_sum<A>(middle, end, term);
}

// Sum of term(i) over [begin, end): lane by lane, long ranges pairwise.
template <class A, class Term>
[[gnu::always_inline]] inline A lane_sum(int64_t begin, int64_t end, const Term& term) {
  if (end - begin <= longest_run) return lane_run<A>(begin, end, term);
  return long_lane_sum<A>(begin, end, term);
}

template <class T>
inline accumulate_t<T> widen(T v) {
  return static_cast<accumulate_t<T>>(v);
}

// A row of T in the accumulation type: itself, or converted into `room`.
template <class T>
const accumulate_t<T>* widened_row(const T* row, accumulate_t<T>* room, int64_t n) {
  if constexpr (std::is_same_v<T, accumulate_t<T>>) {
    return row;
  } else {
    for (int64_t i = 0; i < n; ++i) room[i] = widen(row[i]);
    return room;
  }
}

// The way back: loops of one width and conversions apart vectorise better than mixed ones.
template <class T>
[[gnu::always_inline]] inline void narrow_row(const accumulate_t<T>* __restrict row,
                                              T* __restrict to, int64_t n) {
  by_lanes(n, [&](int64_t i) { to[i] = static_cast<T>(row[i]); });
}

// Items per chunk of a parallel loop whose items touch `cost` elements each.
inline int64_t chunk_of(int64_t cost) { return cost >= 16384 ? 1 : 16384 / (cost > 0 ? cost : 1); }

}  // namespace facula::cpu::FACULA_ISA
