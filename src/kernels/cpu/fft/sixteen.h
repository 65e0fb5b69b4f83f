// Transforms of lines of 16 complex floats that are rows of memory, without turning them into
// lanes: as a matrix of 4 x 4, whose columns and then rows are transformed in registers.
#pragma once
#include "kernels/cpu/fft/line_block.h"
#include "kernels/cpu/fft/short_lines.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)

// cos and sin of k c pi / 8 for row k = 1, 2, 3 and column c of the matrix, twice for each number.
// Signs of the sines are such that exchanged parts times them are added.
template <bool forward>
struct SixteenTurns {
  static constexpr double cosine(int part) {  // part of 16 around the circle
    const int half = part % 16 > 8 ? 16 - part % 16 : part % 16;
    return half <= 4 ? eighths[half] : -eighths[8 - half];
  }
  constexpr SixteenTurns() {
    for (int k = 0; k < 3; ++k)
      for (int lane = 0; lane < 16; ++lane) {
        const int part = (k + 1) * (lane % 8 / 2);
        const double sine = cosine(part + 12);
        cosines[k][lane] = static_cast<float>(cosine(part));
        sines[k][lane] = static_cast<float>((lane % 2 == 0) == forward ? sine : -sine);
      }
  }
  alignas(64) float cosines[3][16]{};
  alignas(64) float sines[3][16]{};
};

// Numbers of two lines: four of the first in the lower half of a vector, four of the second above;
// the imaginary part of each follows its real part.
template <bool forward>
class PairOfSixteens {
 public:
  template <bool is_scaled>
  [[gnu::always_inline]] static void run(const float* a, const float* b, float* to_a, float* to_b,
                                         float scale) {
    __m512 v[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m512d low = _mm512_castpd256_pd512(_mm256_castps_pd(_mm256_loadu_ps(a + 8 * k)));
      v[k] = _mm512_castpd_ps(
          _mm512_insertf64x4(low, _mm256_castps_pd(_mm256_loadu_ps(b + 8 * k)), 1));
    }
    transform_four(v);
#pragma GCC unroll 4
    for (int k = 1; k < 4; ++k)
      v[k] = _mm512_fmadd_ps(exchanged(v[k]), _mm512_load_ps(turns.sines[k - 1]),
                             v[k] * _mm512_load_ps(turns.cosines[k - 1]));
    turn_squares(v);
    transform_four(v);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      if (is_scaled) v[k] = _mm512_mul_ps(v[k], _mm512_set1_ps(scale));
      _mm256_storeu_ps(to_a + 8 * k, _mm512_castps512_ps256(v[k]));
      _mm256_storeu_ps(to_b + 8 * k,
                       _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v[k]), 1)));
    }
  }

 private:
  // Real and imaginary parts.
  [[gnu::always_inline]] static __m512 exchanged(__m512 v) { return _mm512_permute_ps(v, 0xb1); }

  // Of the numbers that the four vectors have in each place.
  [[gnu::always_inline]] static void transform_four(__m512* v) {
    const __m512 one = _mm512_set1_ps(1), sum = v[0] + v[2], difference = v[0] - v[2],
                 odd = v[1] + v[3], turned_odd = exchanged(v[1] - v[3]);
    v[0] = sum + odd;
    v[2] = sum - odd;
    v[forward ? 1 : 3] = _mm512_fmsubadd_ps(difference, one, turned_odd);
    v[forward ? 3 : 1] = _mm512_fmaddsub_ps(difference, one, turned_odd);
  }

  // Transposes the square of 4 x 4 numbers in each half.
  [[gnu::always_inline]] static void turn_squares(__m512* v) {
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                  high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    const auto pd = [](__m512 x) { return _mm512_castps_pd(x); };
    const __m512d a = _mm512_unpacklo_pd(pd(v[0]), pd(v[1])),
                  b = _mm512_unpackhi_pd(pd(v[0]), pd(v[1])),
                  c = _mm512_unpacklo_pd(pd(v[2]), pd(v[3])),
                  d = _mm512_unpackhi_pd(pd(v[2]), pd(v[3]));
    v[0] = _mm512_castpd_ps(_mm512_permutex2var_pd(a, low, c));
    v[1] = _mm512_castpd_ps(_mm512_permutex2var_pd(b, low, d));
    v[2] = _mm512_castpd_ps(_mm512_permutex2var_pd(a, high, c));
    v[3] = _mm512_castpd_ps(_mm512_permutex2var_pd(b, high, d));
  }

  static constexpr SixteenTurns<forward> turns{};
};

template <bool forward, bool is_scaled>
void transform_run(const LinePairs& lines, const LinePairs::Run& run, const float* from, float* to,
                   float scale) {
  const int64_t in = 2 * lines.from_distance(), out = 2 * lines.to_distance();
  from += 2 * run.from;
  to += 2 * run.to;
  for (int64_t k = 0; k < run.count; k += 2) {
    const int64_t next = min_of(k + 1, run.count - 1);  // of an odd count the last one by itself
    PairOfSixteens<forward>::template run<is_scaled>(from + k * in, from + next * in, to + k * out,
                                                     to + next * out, scale);
  }
}

// The steps between elements must be 1.
inline void transform_sixteens(const LinePairs& lines, const float* from, float* to, float scale,
                               bool forward) {
  parallel_for(lines.count(), chunk_of(line_cost(16) / 4), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const LinePairs::Run run = lines.run(begin, end - begin);
      begin += run.count;
      if (scale == 1)
        forward ? transform_run<true, false>(lines, run, from, to, scale)
                : transform_run<false, false>(lines, run, from, to, scale);
      else
        forward ? transform_run<true, true>(lines, run, from, to, scale)
                : transform_run<false, true>(lines, run, from, to, scale);
    }
  });
}

#endif

}  // namespace facula::cpu::FACULA_ISA
