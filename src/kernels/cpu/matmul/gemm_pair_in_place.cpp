#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/matmul/gemm_pair_kernel.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
namespace {

constexpr int64_t width = pair_width, lanes = width / 2;

// The row of A as floats: of each pair the second element and the first one.
struct FloatRow {
  alignas(vector_bytes) float second[pair_depth], first[pair_depth];

  void widen(const Pair* from, int64_t pairs) {
    for (int64_t p = 0; p < pairs; p += lanes) {
      const auto keep = static_cast<__mmask16>((1u << min_of(pairs - p, lanes)) - 1);
      const PairTerms terms = split_pairs(_mm512_maskz_loadu_epi32(keep, from + p));
      _mm512_store_ps(second + p, terms.second);
      _mm512_store_ps(first + p, terms.first);
    }
  }
};

// Pair p of 16 columns in row p, from 16 pairs of each. The first `columns` exist, and of each the
// elements in `within`; the same elements some squares on are asked for.
[[gnu::always_inline]] inline Square<Pair, lanes> load_square(const BFloat16* b, int64_t b_cs,
                                                              int64_t columns, __mmask32 within) {
  constexpr int64_t ahead = 3 * width;
  using S = Square<Pair, lanes>;
  S square;
#pragma GCC unroll 16
  for (int64_t j = 0; j < lanes; ++j) {
    const BFloat16* column = b + min_of(j, columns - 1) * b_cs;
    __builtin_prefetch(column + ahead);
    square.rows[j] = reinterpret_cast<typename S::Vec>(_mm512_maskz_loadu_epi16(within, column));
  }
  square.transpose();
  return square;
}

// Squares of columns are transposed in registers, and their pairs added in the order of the other
// kernels by multiply-adds of floats: memory takes longer than those.
template <int M>
void column_tile(const InPlaceTile& t) {
  const int64_t pairs = ceil_div(t.k, int64_t{2});
  FloatRow rows[M];
  for (int i = 0; i < M; ++i) rows[i].widen(t.a + i * pair_pitch, pairs);
  __m512 sum[M][2];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  for (int64_t first = 0; first < pairs; first += lanes) {
    const int64_t count = min_of(pairs - first, lanes), elements = min_of(t.k - 2 * first, width);
    const auto within = static_cast<__mmask32>((uint64_t{1} << elements) - 1);
#pragma GCC unroll 2
    for (int64_t g = 0; g < 2; ++g) {
      const int64_t columns = t.columns - g * lanes;
      if (columns <= 0) break;
      const auto square =
          load_square(t.b + g * lanes * t.b_step + 2 * first, t.b_step, columns, within);
#pragma GCC unroll 16
      for (int64_t p = 0; p < lanes; ++p) {
        if (p >= count) break;
        const PairTerms b = split_pairs(reinterpret_cast<__m512i>(square.rows[p]));
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
          sum[i][g] =
              _mm512_fmadd_ps(_mm512_set1_ps(rows[i].second[first + p]), b.second, sum[i][g]);
          sum[i][g] = _mm512_fmadd_ps(_mm512_set1_ps(rows[i].first[first + p]), b.first, sum[i][g]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i)
    for (int64_t g = 0; g < 2; ++g) _mm512_store_ps(t.sums + i * width + g * lanes, sum[i][g]);
}

// Adds a row of B, of which `masks` exist, times an element of each row of A.
template <int M>
[[gnu::always_inline]] inline void add_row(__m512 (&sum)[M][2 * wide_panels],
                                           const float (&factors)[M], const BFloat16* row,
                                           const __mmask32 (&masks)[wide_panels], int64_t ahead) {
#pragma GCC unroll 4
  for (int g = 0; g < wide_panels; ++g) {
    __builtin_prefetch(row + ahead + g * width);
    const WideElements right = widen_elements(_mm512_maskz_loadu_epi16(masks[g], row + g * width));
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i)
        sum[i][2 * g + h] =
            _mm512_fmadd_ps(_mm512_set1_ps(factors[i]), right.halves[h], sum[i][2 * g + h]);
    }
  }
}

// Several panels of columns side by side: with few rows of A, sums of one would wait for each
// other, and each row of B would be a line of a page of its own.
template <int M>
void wide_tile(const InPlaceTile& t) {
  const int64_t pairs = ceil_div(t.k, int64_t{2}), ahead = 16 * t.b_step;
  FloatRow rows[M];
  for (int i = 0; i < M; ++i) rows[i].widen(t.a + i * pair_pitch, pairs);
  __mmask32 masks[wide_panels];
  for (int64_t g = 0; g < wide_panels; ++g) {
    const int64_t here = max_of(min_of(t.columns - g * width, width), int64_t{0});
    masks[g] = static_cast<__mmask32>((uint64_t{1} << here) - 1);
  }
  __m512 sum[M][2 * wide_panels];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < 2 * wide_panels; ++j) sum[i][j] = _mm512_setzero_ps();
  }
  const BFloat16* row = t.b;
  for (int64_t p = 0; p < pairs; ++p, row += 2 * t.b_step) {
    float factors[M];
    for (int i = 0; i < M; ++i) factors[i] = rows[i].second[p];
    if (2 * p + 1 < t.k) add_row(sum, factors, row + t.b_step, masks, ahead);
    for (int i = 0; i < M; ++i) factors[i] = rows[i].first[p];
    add_row(sum, factors, row, masks, ahead);
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < 2 * wide_panels; ++j)
      _mm512_store_ps(t.sums + i * wide_panels * width + j * lanes, sum[i][j]);
  }
}

}  // namespace

InPlaceKernel wide_kernel(int64_t rows) {
  constexpr InPlaceKernel kernels[max_wide_rows] = {&wide_tile<1>, &wide_tile<2>, &wide_tile<3>};
  return kernels[rows - 1];
}

InPlaceKernel column_kernel(int64_t rows) {
  constexpr InPlaceKernel kernels[max_column_rows] = {&column_tile<1>, &column_tile<2>,
                                                      &column_tile<3>, &column_tile<4>};
  return kernels[rows - 1];
}

#endif

}  // namespace facula::cpu::FACULA_ISA
