// Whole squares of lines between memory, where they are rows, and lanes: by shuffles of neighbours,
// which take half the time of those across a vector.
#pragma once
#include <algorithm>

#include "kernels/cpu/loop/copy_transposed.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)

// Four vectors of four times four floats: each square of 4 x 4 is transposed where it stands.
[[gnu::always_inline]] inline void turn_quarters(__m512* v) {
  const __m512 a = _mm512_unpacklo_ps(v[0], v[1]), b = _mm512_unpackhi_ps(v[0], v[1]),
               c = _mm512_unpacklo_ps(v[2], v[3]), d = _mm512_unpackhi_ps(v[2], v[3]);
  const auto low = [](__m512 x, __m512 y) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  const auto high = [](__m512 x, __m512 y) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  v[0] = low(a, c);
  v[1] = high(a, c);
  v[2] = low(b, d);
  v[3] = high(b, d);
}

// rows[i * 16 + k] = from[k * distance + i] for i, k < 16.
[[gnu::always_inline]] inline void lines_to_lanes(float* rows, const float* from,
                                                  int64_t distance) {
#pragma GCC unroll 4
  for (int part = 0; part < 16; part += 4) {
    __m512 v[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const float* at = from + k * distance + part;
      __m512 four = _mm512_castps128_ps512(_mm_loadu_ps(at));
      four = _mm512_insertf32x4(four, _mm_loadu_ps(at + 4 * distance), 1);
      four = _mm512_insertf32x4(four, _mm_loadu_ps(at + 8 * distance), 2);
      v[k] = _mm512_insertf32x4(four, _mm_loadu_ps(at + 12 * distance), 3);
    }
    turn_quarters(v);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) _mm512_storeu_ps(rows + (part + k) * 16, v[k]);
  }
}

// Calls store(k, numbers) with rows[i * step + k] for i < 16, for each line k < 16.
template <class Store>
[[gnu::always_inline]] inline void turn_square(const float* rows, int64_t step, Store&& store) {
  __m512 v[16];
#pragma GCC unroll 4
  for (int part = 0; part < 16; part += 4) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) v[part + k] = _mm512_loadu_ps(rows + (part + k) * step);
    turn_quarters(v + part);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const __m512 a = _mm512_shuffle_f32x4(v[k], v[4 + k], 0x88),
                 b = _mm512_shuffle_f32x4(v[k], v[4 + k], 0xdd),
                 c = _mm512_shuffle_f32x4(v[8 + k], v[12 + k], 0x88),
                 d = _mm512_shuffle_f32x4(v[8 + k], v[12 + k], 0xdd);
    store(k, _mm512_shuffle_f32x4(a, c, 0x88));
    store(k + 4, _mm512_shuffle_f32x4(b, d, 0x88));
    store(k + 8, _mm512_shuffle_f32x4(a, c, 0xdd));
    store(k + 12, _mm512_shuffle_f32x4(b, d, 0xdd));
  }
}

// to[k * distance + i] = rows[i * step + k] for i, k < 16.
[[gnu::always_inline]] inline void lanes_to_lines(float* to, int64_t distance, const float* rows,
                                                  int64_t step) {
  turn_square(rows, step, [=](int k, __m512 v) { _mm512_storeu_ps(to + k * distance, v); });
}

// The same for `squares` squares, one behind the other, by stores that cross no cache line: each
// joins the end of a square with the beginning of the next one.
[[gnu::noinline]] inline void lanes_to_uneven_lines(float* to, int64_t distance, const float* rows,
                                                    int64_t step, int64_t squares) {
  const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  float* lines[16];
  int ahead[16];  // numbers in front of a line's first boundary
  alignas(64) float last[16][16];
  for (int64_t k = 0; k < 16; ++k) {
    const auto address = reinterpret_cast<uintptr_t>(to + k * distance);
    ahead[k] = static_cast<int>(-address / sizeof(float) % 16);
    lines[k] = to + k * distance + ahead[k];
  }
  turn_square(rows, step, [&](int k, __m512 v) {
    _mm512_store_ps(last[k], v);
    const auto mask = static_cast<__mmask16>((1U << ahead[k]) - 1);
    _mm512_mask_storeu_ps(to + k * distance, mask, v);
  });
  for (int64_t i = 16; i < 16 * squares; i += 16)
    turn_square(rows + i * step, step, [&](int k, __m512 v) {
      const __m512i from = _mm512_add_epi32(order, _mm512_set1_epi32(ahead[k]));
      const __m512 joined = _mm512_permutex2var_ps(_mm512_load_ps(last[k]), from, v);
      _mm512_storeu_ps(lines[k] + i - 16, joined);
      _mm512_store_ps(last[k], v);
    });
  for (int64_t k = 0; k < 16; ++k)
    std::copy(last[k] + ahead[k], last[k] + 16, lines[k] + 16 * (squares - 1));
}

#endif

// The first n numbers of `count` lines to rows of `Lanes` numbers.
template <int64_t Lanes, class T>
void turn_into_lanes(T* rows, const T* from, int64_t distance, int64_t n, int64_t count) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float> && Lanes == 16)
    for (; count == 16 && i + 16 <= n; i += 16) lines_to_lanes(rows + i * 16, from + i, distance);
#endif
  if (i < n) copy_transposed<T>(rows + i * Lanes, Lanes, from + i, distance, n - i, count);
}

// The way back; rows begin `step` numbers from each other.
template <int64_t Lanes, class T>
void turn_into_lines(T* to, int64_t distance, const T* rows, int64_t n, int64_t count,
                     int64_t step = Lanes) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float> && Lanes == 16) {
    constexpr int64_t least_uneven = 64;
    const bool even = reinterpret_cast<uintptr_t>(to) % 64 == 0 && distance % 16 == 0;
    if (count == 16 && n >= least_uneven && !even) {
      lanes_to_uneven_lines(to, distance, rows, step, n / 16);
      i = n / 16 * 16;
    }
    for (; count == 16 && i + 16 <= n; i += 16)
      lanes_to_lines(to + i, distance, rows + i * step, step);
  }
#endif
  if (i < n) copy_transposed<T>(to + i, distance, rows + i * step, step, count, n - i);
}

}  // namespace facula::cpu::FACULA_ISA
