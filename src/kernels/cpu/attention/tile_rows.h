// Rows of scores as the left operands of products by tiles: weights are bfloat16 as soon as they
// are known, and an exponential need not be better than they are by much.
#pragma once
#include "kernels/cpu/attention/rows.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)

#define FACULA_TILE_ROWS __attribute__((target("avx512bf16")))

inline constexpr float log2_of_e = 1.4426950408889634f;

// 2^x to 2^-18 of it. Zero for -infinity, nan for nan.
[[gnu::always_inline]] inline __m512 exp2_short(__m512 x) {
  const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF);  // x - floor(x)
  __m512 y = _mm512_set1_ps(0.013426685f);
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.052242473f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.2412802f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.69304484f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f));
  return _mm512_maskz_scalef_ps(0xffff, y, x);
}

// The first `count` of 16 lanes, none for a negative count.
[[gnu::always_inline]] inline __mmask16 first_lanes(int64_t count) {
  if (count >= 16) return 0xffff;
  return count <= 0 ? __mmask16{0} : static_cast<__mmask16>((1u << count) - 1);
}

// Of 16 lanes from column i on, those that are neither hidden nor behind the last.
[[gnu::always_inline]] inline __mmask16 counted_lanes(RowSpan span, int64_t i) {
  return static_cast<__mmask16>(first_lanes(span.n - i) & ~first_lanes(span.hidden - i));
}

// to[i], to[i + 16] of 32 elements, low ones first.
FACULA_TILE_ROWS [[gnu::always_inline]] inline void store_narrow(BFloat16* to, __m512 low,
                                                                 __m512 high) {
  _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

// to[i] = e^(x[i] - most), zeros from n to `padded`, a multiple of 32; the sum before rounding.
FACULA_TILE_ROWS inline float exp_tile_row(BFloat16* to, const float* x, float most, int64_t n,
                                           int64_t padded) {
  const __m512 factor = _mm512_set1_ps(log2_of_e), shift = _mm512_set1_ps(most);
  const auto weight = [&](int64_t i) __attribute__((always_inline)) {
    return exp2_short(_mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x + i), shift), factor));
  };
  __m512 low_sum = _mm512_setzero_ps(), high_sum = _mm512_setzero_ps();
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m512 low = weight(i), high = weight(i + 16);
    low_sum = _mm512_add_ps(low_sum, low);
    high_sum = _mm512_add_ps(high_sum, high);
    store_narrow(to + i, low, high);
  }
  for (; i < padded; i += 32) {
    const __m512 low = _mm512_maskz_mov_ps(first_lanes(n - i), weight(i));
    const __m512 high = _mm512_maskz_mov_ps(first_lanes(n - i - 16), weight(i + 16));
    low_sum = _mm512_add_ps(low_sum, low);
    high_sum = _mm512_add_ps(high_sum, high);
    store_narrow(to + i, low, high);
  }
  float sum[sum_lanes];
  _mm512_storeu_ps(sum, _mm512_add_ps(low_sum, high_sum));
  return sum_of_lanes(sum);
}

// to[i] = x[i] times factor.
FACULA_TILE_ROWS inline void write_tile_row(BFloat16* to, const float* x, float factor, int64_t n) {
  const __m512 by = _mm512_set1_ps(factor);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 here = first_lanes(n - i);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(here, x + i), by);
    const auto narrow = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(scaled));
    _mm256_mask_storeu_epi16(to + i, here, narrow);
  }
}

// x[i] = to[i] = e^(scale * x[i] (+ mask[i]) - sums[i]); zeros behind the last column up to a
// multiple of 32.
FACULA_TILE_ROWS inline void weigh_tile_row(BFloat16* to, float* x, const float* mask,
                                            const float* sums, float scale, RowSpan span) {
  const __m512 factor = _mm512_set1_ps(scale), to_log2 = _mm512_set1_ps(log2_of_e);
  const auto weight = [&](int64_t i) __attribute__((always_inline)) {
    const __mmask16 here = counted_lanes(span, i);
    __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(x + i), factor);
    if (mask != nullptr) scaled = _mm512_add_ps(scaled, _mm512_maskz_loadu_ps(here, mask + i));
    const __m512 shifted = _mm512_sub_ps(scaled, _mm512_maskz_loadu_ps(here, sums + i));
    const __m512 y = _mm512_maskz_mov_ps(here, exp2_short(_mm512_mul_ps(shifted, to_log2)));
    _mm512_storeu_ps(x + i, y);
    return y;
  };
  for (int64_t i = span.first; i < span.n; i += 32) {
    const __m512 low = weight(i), high = weight(i + 16);
    store_narrow(to + i, low, high);
  }
}

// to[i] = weights[i] * (x[i] - delta[i]) * scale; zeros as above.
FACULA_TILE_ROWS inline void slope_tile_row(BFloat16* to, const float* x, const float* weights,
                                            const float* delta, float scale, RowSpan span) {
  const __m512 factor = _mm512_set1_ps(scale);
  const auto slope = [&](int64_t i) __attribute__((always_inline)) {
    const __mmask16 here = counted_lanes(span, i);
    const __m512 change =
        _mm512_sub_ps(_mm512_maskz_loadu_ps(here, x + i), _mm512_maskz_loadu_ps(here, delta + i));
    const __m512 weight = _mm512_mul_ps(_mm512_loadu_ps(weights + i), factor);
    return _mm512_maskz_mul_ps(here, weight, change);
  };
  for (int64_t i = span.first; i < span.n; i += 32) {
    const __m512 low = slope(i), high = slope(i + 16);
    store_narrow(to + i, low, high);
  }
}

#undef FACULA_TILE_ROWS

#endif

}  // namespace facula::cpu::FACULA_ISA
