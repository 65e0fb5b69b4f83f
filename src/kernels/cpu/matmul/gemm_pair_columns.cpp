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
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    for (int64_t p = 0; p < pairs; p += lanes) {
      const auto keep = static_cast<__mmask16>((1u << min_of(pairs - p, lanes)) - 1);
      const __m512i both = _mm512_maskz_loadu_epi32(keep, from + p);
      _mm512_store_si512(second + p, _mm512_and_si512(both, high));
      _mm512_store_si512(first + p, _mm512_maskz_slli_epi32(0xffff, both, 16));
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
void column_tile(const ColumnTile& t) {
  const int64_t pairs = ceil_div(t.k, int64_t{2});
  FloatRow rows[M];
  for (int i = 0; i < M; ++i) rows[i].widen(t.a + i * pair_pitch, pairs);
  __m512 sum[M][2];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int64_t first = 0; first < pairs; first += lanes) {
    const int64_t count = min_of(pairs - first, lanes), elements = min_of(t.k - 2 * first, width);
    const auto within = static_cast<__mmask32>((uint64_t{1} << elements) - 1);
#pragma GCC unroll 2
    for (int64_t g = 0; g < 2; ++g) {
      const int64_t columns = t.columns - g * lanes;
      if (columns <= 0) break;
      const auto square =
          load_square(t.b + g * lanes * t.b_cs + 2 * first, t.b_cs, columns, within);
#pragma GCC unroll 16
      for (int64_t p = 0; p < lanes; ++p) {
        if (p >= count) break;
        const auto both = reinterpret_cast<__m512i>(square.rows[p]);
        const __m512 second = _mm512_castsi512_ps(_mm512_and_si512(both, high));
        const __m512 low = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, both, 16));
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
          sum[i][g] = _mm512_fmadd_ps(_mm512_set1_ps(rows[i].second[first + p]), second, sum[i][g]);
          sum[i][g] = _mm512_fmadd_ps(_mm512_set1_ps(rows[i].first[first + p]), low, sum[i][g]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i)
    for (int64_t g = 0; g < 2; ++g) _mm512_store_ps(t.sums + i * width + g * lanes, sum[i][g]);
}

}  // namespace

ColumnKernel column_kernel(int64_t rows) {
  constexpr ColumnKernel kernels[max_column_rows] = {&column_tile<1>, &column_tile<2>,
                                                     &column_tile<3>, &column_tile<4>};
  return kernels[rows - 1];
}

#endif

}  // namespace facula::cpu::FACULA_ISA
