#include "kernels/cpu/quantized/product_tile.h"

#include <cstring>

#include "kernels/cpu/quantized/product.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t vector_rows = 6;  // whose sums the vector registers hold

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
  static constexpr const TileKernel* rows[vector_rows] = {vnni_row<1>, vnni_row<2>, vnni_row<3>,
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

// By vectors: at most vector_rows rows.
void vector_tile(const ByteTile& t) {
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

#if defined(__AVX512F__)

// Steps (of four bytes along k) that one tile takes: whole ones, and the last ones by tiles of
// another shape, so that nothing behind a row is read.
constexpr int64_t tile_steps = 16;

TileShapes shapes_of(int64_t rows, int64_t steps) {
  TileShapes shapes;
  for (int sums = 0; sums < 4; ++sums) shapes.set(sums, rows, tile_row_bytes);
  shapes.set(4, rows, tile_row_bytes);
  shapes.set(6, tile_steps, tile_row_bytes);
  if (const int64_t rest = steps % tile_steps) {
    shapes.set(5, rows, 4 * rest);
    shapes.set(7, rest, tile_row_bytes);
  }
  return shapes;
}

// Tiles 0 to 3 hold the sums of four panels, 4 and 5 rows of A, 6 and 7 those of B.
template <class Tiles, int panel>
[[gnu::always_inline]] inline void zero_panels(int64_t panels) {
  if (panel >= panels) return;
  Tiles::template zero<panel>();
  if constexpr (panel < 3) zero_panels<Tiles, panel + 1>(panels);
}
template <class Tiles, int panel, int a, int b>
[[gnu::always_inline]] inline void add_panels(const ByteTile& t, int64_t panels, int64_t step) {
  if (panel >= panels) return;
  Tiles::template load<b>(t.b + (panel * t.steps + step) * 64, 64);
  Tiles::template multiply_bytes<panel, a, b>();
  if constexpr (panel < 3) add_panels<Tiles, panel + 1, a, b>(t, panels, step);
}
template <class Tiles, int panel>
[[gnu::always_inline]] inline void store_panels(const ByteTile& t, int64_t panels) {
  if (panel >= panels) return;
  Tiles::template store<panel>(t.sums + panel * byte_columns, tile_columns * sizeof(int32_t));
  if constexpr (panel < 3) store_panels<Tiles, panel + 1>(t, panels);
}

template <class Tiles>
void tile_by_amx(const ByteTile& t) {
  const int64_t panels = panels_of(t), whole = t.steps / tile_steps * tile_steps;
  zero_panels<Tiles, 0>(panels);
  for (int64_t step = 0; step < whole; step += tile_steps) {
    Tiles::template load<4>(t.a + step * 4, t.a_pitch);
    add_panels<Tiles, 0, 4, 6>(t, panels, step);
  }
  if (whole < t.steps) {
    Tiles::template load<5>(t.a + whole * 4, t.a_pitch);
    add_panels<Tiles, 0, 5, 7>(t, panels, whole);
  }
  store_panels<Tiles, 0>(t, panels);
}

#endif

}  // namespace

#if defined(__AVX512F__)

ByteTiles::ByteTiles(int64_t steps) : steps_(steps), way_(tile_ways().bytes) {}

ByteTiles::~ByteTiles() {
  if (configured_rows_ == 0) return;
  with_tiles(way_, [](auto tiles) { tiles.release(); });
}

void ByteTiles::configure(int64_t rows) {
  if (rows == configured_rows_) return;
  const TileShapes shapes = shapes_of(rows, steps_);
  with_tiles(way_, [&](auto tiles) { tiles.configure(shapes); });
  configured_rows_ = rows;
}

int64_t ByteTiles::rows() const { return way_ == TileWay::none ? vector_rows : tile_rows; }

void ByteTiles::multiply(const ByteTile& t) {
  if (way_ == TileWay::none) return vector_tile(t);
  configure(t.m);
  with_tiles(way_, [&](auto tiles) { tile_by_amx<decltype(tiles)>(t); });
}

#else

ByteTiles::ByteTiles(int64_t steps) : steps_(steps), way_(TileWay::none) {}
ByteTiles::~ByteTiles() {}
int64_t ByteTiles::rows() const { return vector_rows; }
void ByteTiles::multiply(const ByteTile& t) { vector_tile(t); }

#endif

}  // namespace facula::cpu::FACULA_ISA
