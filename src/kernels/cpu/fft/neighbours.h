// Numbers of as many lines as lie beside each other in memory, to lanes and back. Complex numbers
// are `Width` = 2 numbers, and become a vector of real parts and one of imaginary parts.
#pragma once
#include <algorithm>
#include <utility>

#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
// The first `count` lanes; none where it is negative.
template <class T>
[[gnu::always_inline]] inline auto lane_mask(int64_t count) {
  using Mask = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  return static_cast<Mask>((1U << std::max<int64_t>(count, 0)) - 1);
}
#endif

// A vector of the first `count` numbers at `from`, with zeros behind them.
template <class T>
[[gnu::always_inline]] inline auto load_first(const T* from, int64_t count) {
  using S = Simd<T>;
  if (count >= S::lanes) return S::load(from);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (typename S::Vec)_mm512_maskz_loadu_ps(lane_mask<T>(count), from);
  else
    return (typename S::Vec)_mm512_maskz_loadu_pd(lane_mask<T>(count), from);
#else
  T room[S::lanes] = {};
  for (int64_t k = 0; k < count; ++k) room[k] = from[k];
  return S::load(room);
#endif
}

#if defined(__AVX512F__)
template <class T>
[[gnu::always_inline]] inline auto mask_between(int64_t begin, int64_t end) {
  return static_cast<decltype(lane_mask<T>(end))>(lane_mask<T>(end) ^ lane_mask<T>(begin));
}
#endif

// `v` with lanes from `begin` to `end` from the numbers at `from` where these lanes would be;
// both may lie outside of the vector.
template <class T>
[[gnu::always_inline]] inline auto load_between(typename Simd<T>::Vec v, const T* from,
                                                int64_t begin, int64_t end) {
  using S = Simd<T>;
  begin = std::clamp<int64_t>(begin, 0, S::lanes);
  end = std::clamp<int64_t>(end, begin, S::lanes);
#if defined(__AVX512F__)
  const auto mask = mask_between<T>(begin, end);
  if constexpr (sizeof(T) == 4)
    return (typename S::Vec)_mm512_mask_loadu_ps((__m512)v, mask, from);
  else
    return (typename S::Vec)_mm512_mask_loadu_pd((__m512d)v, mask, from);
#else
  for (int64_t k = begin; k < end; ++k) v[k] = from[k];
  return v;
#endif
}
template <class T>
[[gnu::always_inline]] inline void store_between(T* to, typename Simd<T>::Vec v, int64_t begin,
                                                 int64_t end) {
  using S = Simd<T>;
  begin = std::clamp<int64_t>(begin, 0, S::lanes);
  end = std::clamp<int64_t>(end, begin, S::lanes);
#if defined(__AVX512F__)
  const auto mask = mask_between<T>(begin, end);
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(to, mask, (__m512)v);
  else
    _mm512_mask_storeu_pd(to, mask, (__m512d)v);
#else
  for (int64_t k = begin; k < end; ++k) to[k] = v[k];
#endif
}

template <class T>
[[gnu::always_inline]] inline void store_first(T* to, typename Simd<T>::Vec v, int64_t count) {
  using S = Simd<T>;
  if (count >= S::lanes) return S::store(to, v);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(to, lane_mask<T>(count), (__m512)v);
  else
    _mm512_mask_storeu_pd(to, lane_mask<T>(count), (__m512d)v);
#else
  for (int64_t k = 0; k < count; ++k) to[k] = v[k];
#endif
}

// As many complex numbers as a vector has lanes.
template <class V>
struct ComplexLanes {
  V re, im;
};

// Every second number of `low` and then `high`, from number `first` on; backward from the last one.
template <int first, bool backward, class V, size_t... I>
[[gnu::always_inline]] inline V every_second(V low, V high, std::index_sequence<I...>) {
  constexpr int last = sizeof...(I) - 1;
  return __builtin_shufflevector(
      low, high, first + 2 * (backward ? last - static_cast<int>(I) : static_cast<int>(I))...);
}
// Lanes of `re` and `im` in turn, from lane `first` on; backward from the last one.
template <int first, bool backward, class V, size_t... I>
[[gnu::always_inline]] inline V in_turn(ComplexLanes<V> v, std::index_sequence<I...>) {
  constexpr int lanes = sizeof...(I);
  constexpr auto lane = [](size_t i) {
    const int k = first + static_cast<int>(i / 2);
    return (backward ? lanes - 1 - k : k) + (i % 2 != 0 ? lanes : 0);
  };
  return __builtin_shufflevector(v.re, v.im, lane(I)...);
}

// Neighbours, of which the last is in the first lane where it goes backward.
template <bool backward = false, class T>
[[gnu::always_inline]] inline auto load_complex(const T* from, int64_t count = Simd<T>::lanes) {
  constexpr int lanes = Simd<T>::lanes;
  constexpr std::make_index_sequence<size_t{lanes}> each;
  const auto low = load_first(from, 2 * count), high = load_first(from + lanes, 2 * count - lanes);
  return ComplexLanes<typename Simd<T>::Vec>{every_second<0, backward>(low, high, each),
                                             every_second<1, backward>(low, high, each)};
}
template <bool backward = false, class T>
[[gnu::always_inline]] inline void store_complex(T* to, ComplexLanes<typename Simd<T>::Vec> v,
                                                 int64_t count = Simd<T>::lanes) {
  constexpr int lanes = Simd<T>::lanes;
  constexpr std::make_index_sequence<size_t{lanes}> each;
  store_first(to, in_turn<0, backward>(v, each), 2 * count);
  store_first(to + lanes, in_turn<lanes / 2, backward>(v, each), 2 * count - lanes);
}

// `count` neighbours at `from`, at most as many as a vector has lanes, to one or two rows of lanes.
template <int Width, class T>
[[gnu::always_inline]] inline void load_neighbours(T* rows, const T* from, int64_t count) {
  using S = Simd<T>;
  if constexpr (Width == 1) {
    S::store(rows, load_first(from, count));
  } else {
    const auto v = load_complex(from, count);
    S::store(rows, v.re);
    S::store(rows + S::lanes, v.im);
  }
}

// Lanes `begin` to `end` of rows, from where number 0 of a line in the first lane would be.
template <int Width, class T>
[[gnu::always_inline]] inline void load_neighbours_between(T* rows, const T* from, int64_t begin,
                                                           int64_t end) {
  using S = Simd<T>;
  if constexpr (Width == 1) {
    S::store(rows, load_between(S::load(rows), from, begin, end));
  } else {
    constexpr std::make_index_sequence<size_t{S::lanes}> each;
    ComplexLanes<typename S::Vec> v{S::load(rows), S::load(rows + S::lanes)};
    const auto low = load_between(in_turn<0, false>(v, each), from, 2 * begin, 2 * end),
               high = load_between(in_turn<S::lanes / 2, false>(v, each), from + S::lanes,
                                   2 * begin - S::lanes, 2 * end - S::lanes);
    S::store(rows, every_second<0, false>(low, high, each));
    S::store(rows + S::lanes, every_second<1, false>(low, high, each));
  }
}

// The way back.
template <int Width, class T>
[[gnu::always_inline]] inline void store_neighbours_between(T* to, const T* rows, int64_t begin,
                                                            int64_t end) {
  using S = Simd<T>;
  if constexpr (Width == 1) {
    store_between(to, S::load(rows), begin, end);
  } else {
    constexpr std::make_index_sequence<size_t{S::lanes}> each;
    const ComplexLanes<typename S::Vec> v{S::load(rows), S::load(rows + S::lanes)};
    store_between(to, in_turn<0, false>(v, each), 2 * begin, 2 * end);
    store_between(to + S::lanes, in_turn<S::lanes / 2, false>(v, each), 2 * begin - S::lanes,
                  2 * end - S::lanes);
  }
}

// The way back.
template <int Width, class T>
[[gnu::always_inline]] inline void store_neighbours(T* to, const T* rows, int64_t count) {
  using S = Simd<T>;
  if constexpr (Width == 1)
    store_first(to, S::load(rows), count);
  else
    store_complex(to, {S::load(rows), S::load(rows + S::lanes)}, count);
}

}  // namespace facula::cpu::FACULA_ISA
