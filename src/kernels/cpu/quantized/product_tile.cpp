#include "kernels/cpu/quantized/product_tile.h"

#include <cstring>

#include "kernels/cpu/quantized/product.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace facula::cpu::FACULA_ISA {
namespace {

int64_t panels_of(const ByteTile& t) { return (t.n + byte_columns - 1) / byte_columns; }

[[gnu::always_inline]] inline int32_t four_bytes(const uint8_t* p) {
  int32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

#if defined(__AVX512F__)

// The instruction that adds four products of unsigned by signed bytes to an int32.
#define FACULA_VNNI __attribute__((target("avx512vnni")))

template <int M, int N>
FACULA_VNNI void vnni_tile(const ByteTile& t) {
  __m512i sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) sum[i][j] = _mm512_setzero_si512();
  }
  const int64_t panel = t.steps * 64;
  for (int64_t p = 0; p < t.steps; ++p) {
    __m512i right[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) right[j] = _mm512_loadu_si512(t.b + j * panel + p * 64);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const __m512i left = _mm512_set1_epi32(four_bytes(t.a + i * t.a_pitch + p * 4));
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sum[i][j] = _mm512_dpbusd_epi32(sum[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j)
      _mm512_storeu_si512(t.sums + i * tile_columns + j * byte_columns, sum[i][j]);
  }
}

using TileKernel = void (*)(const ByteTile&);
template <int M>
constexpr TileKernel vnni_row[4] = {vnni_tile<M, 1>, vnni_tile<M, 2>, vnni_tile<M, 3>,
                                    vnni_tile<M, 4>};

TileKernel vnni_kernel(int64_t m, int64_t panels) {
  static constexpr const TileKernel* rows[tile_rows] = {vnni_row<1>, vnni_row<2>, vnni_row<3>,
                                                        vnni_row<4>, vnni_row<5>, vnni_row<6>};
  return rows[m - 1][panels - 1];
}

bool has_vnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
}

#endif

#if defined(__AVX2__)

// Bytes are widened to 16 bits, since the instruction for bytes saturates. Each int32 holds two of
// a column's four products; both are added at the end.
template <int M>
void pair_tile(const ByteTile& t, const int8_t* b, int32_t* sums) {
  __m256i sum[M][4];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sum[i][j] = _mm256_setzero_si256();
  }
  for (int64_t p = 0; p < t.steps; ++p) {
    __m256i right[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      right[j] = _mm256_cvtepi8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + p * 64 + j * 16)));
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const __m256i left =
          _mm256_cvtepu8_epi16(_mm_set1_epi32(four_bytes(t.a + i * t.a_pitch + p * 4)));
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j)
        sum[i][j] = _mm256_add_epi32(sum[i][j], _mm256_madd_epi16(left, right[j]));
    }
  }
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < 4; ++j) {
      alignas(32) int32_t halves[8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(halves), sum[i][j]);
      for (int c = 0; c < 4; ++c)
        sums[i * tile_columns + j * 4 + c] = halves[2 * c] + halves[2 * c + 1];
    }
}

#endif

void plain_tile(const ByteTile& t, int64_t row, const int8_t* b, int32_t* sums) {
#if defined(__AVX2__)
  ByteTile one = t;
  one.a += row * t.a_pitch;
  pair_tile<1>(one, b, sums);
#else
  const uint8_t* a = t.a + row * t.a_pitch;
  int32_t sum[byte_columns] = {};
  for (int64_t p = 0; p < t.steps; ++p)
    for (int64_t j = 0; j < byte_columns; ++j)
      for (int64_t i = 0; i < 4; ++i) sum[j] += a[p * 4 + i] * b[(p * byte_columns + j) * 4 + i];
  std::memcpy(sums, sum, sizeof sum);
#endif
}

}  // namespace

void byte_tile(const ByteTile& t) {
  const int64_t panels = panels_of(t);
#if defined(__AVX512F__)
  if (has_vnni()) return vnni_kernel(t.m, panels)(t);
#endif
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int8_t* b = t.b + panel * t.steps * 64;
    int32_t* sums = t.sums + panel * byte_columns;
    int64_t row = 0;
#if defined(__AVX2__)
    for (; row + 2 <= t.m; row += 2) {
      ByteTile two = t;
      two.a += row * t.a_pitch;
      pair_tile<2>(two, b, sums + row * tile_columns);
    }
#endif
    for (; row < t.m; ++row) plain_tile(t, row, b, sums + row * tile_columns);
  }
}

}  // namespace facula::cpu::FACULA_ISA
