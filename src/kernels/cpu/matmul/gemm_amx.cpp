#include "kernels/cpu/matmul/gemm_amx.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
namespace {

constexpr int64_t lanes = pair_width / 2;  // columns of a tile
constexpr int64_t tile_rows = 16;
constexpr TileShapes eight_full_tiles = full_tiles();

// sums[16 R, 16 C] = A B, in rows of pair_width. Tiles 0 to 3 hold the sums, 4 and 5 rows of A, 6
// and 7 columns of B.
template <class Tiles, int R, int C>
void block_sums(const PairTile& t, float* sums) {
  constexpr int64_t a_stride = pair_pitch * sizeof(Pair), b_stride = pair_width * sizeof(Pair);
  constexpr int64_t sum_stride = pair_width * sizeof(float);
  Tiles::template zero<0>();
  if constexpr (C > 1) Tiles::template zero<1>();
  if constexpr (R > 1) Tiles::template zero<2>();
  if constexpr (R > 1 && C > 1) Tiles::template zero<3>();
  for (int64_t p = 0; p < t.pairs; p += amx_pairs) {
    const Pair* b = t.b + p * pair_width;
    Tiles::template load<6>(b, b_stride);
    Tiles::template load<4>(t.a + p, a_stride);
    Tiles::template multiply_bfloat16<0, 4, 6>();
    if constexpr (C > 1) {
      Tiles::template load<7>(b + lanes, b_stride);
      Tiles::template multiply_bfloat16<1, 4, 7>();
    }
    if constexpr (R > 1) {
      Tiles::template load<5>(t.a + tile_rows * pair_pitch + p, a_stride);
      Tiles::template multiply_bfloat16<2, 5, 6>();
      if constexpr (C > 1) Tiles::template multiply_bfloat16<3, 5, 7>();
    }
  }
  Tiles::template store<0>(sums, sum_stride);
  if constexpr (C > 1) Tiles::template store<1>(sums + lanes, sum_stride);
  if constexpr (R > 1) Tiles::template store<2>(sums + tile_rows * pair_width, sum_stride);
  if constexpr (R > 1 && C > 1)
    Tiles::template store<3>(sums + tile_rows * pair_width + lanes, sum_stride);
}

// Writes a block of sums where the tile's product belongs, as pair kernels do.
__attribute__((target("avx512bf16"))) void write_sums(const PairTile& t, const float* sums,
                                                      int64_t rows) {
  for (int64_t j = 0; j < t.columns; j += lanes) {
    const int64_t left = min_of(t.columns - j, lanes);
    const auto keep = static_cast<__mmask16>((1u << left) - 1);
    for (int64_t i = 0; i < rows; ++i) {
      __m512 sum = _mm512_load_ps(sums + i * pair_width + j);
      if (t.narrow != nullptr) {
        const auto halves = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum));
        _mm256_mask_storeu_epi16(t.narrow + i * t.c_rs + j, keep, halves);
        continue;
      }
      float* to = t.c + i * t.c_rs + j;
      if (t.add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(keep, to));
      _mm512_mask_storeu_ps(to, keep, sum);
    }
  }
}

using BlockKernel = void (*)(const PairTile&, float*);
template <class Tiles>
constexpr BlockKernel block_kernels[2][2] = {{block_sums<Tiles, 1, 1>, block_sums<Tiles, 1, 2>},
                                             {block_sums<Tiles, 2, 1>, block_sums<Tiles, 2, 2>}};

}  // namespace

bool has_amx() { return tile_ways().bfloat16 != TileWay::none; }

AmxScope::AmxScope() : way_(tile_ways().bfloat16) {
  with_tiles(way_, [](auto tiles) { tiles.configure(eight_full_tiles); });
}
AmxScope::~AmxScope() {
  with_tiles(way_, [](auto tiles) { tiles.release(); });
}

void amx_tile(const PairTile& t, int64_t rows) {
  alignas(64) float sums[amx_rows * pair_width];
  for (int64_t i = 0; i < rows; i += amx_rows) {
    const int64_t here = min_of(rows - i, amx_rows);
    PairTile block = t;
    block.a += i * pair_pitch;
    if (t.narrow != nullptr)
      block.narrow += i * t.c_rs;
    else
      block.c += i * t.c_rs;
    with_tiles(tile_ways().bfloat16, [&](auto tiles) {
      block_kernels<decltype(tiles)>[here > tile_rows][t.columns > lanes](block, sums);
    });
    write_sums(block, sums, here);
  }
}

#else

bool has_amx() { return false; }

#endif

}  // namespace facula::cpu::FACULA_ISA
