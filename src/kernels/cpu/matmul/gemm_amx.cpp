#include "kernels/cpu/matmul/gemm_amx.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
namespace {

constexpr int64_t lanes = pair_width / 2;  // columns of a tile
constexpr int64_t tile_rows = 16;
constexpr TileShapes eight_full_tiles = full_tiles();

// C[16 R, 16 C] = A B, or added to what is there. Tiles 0 to 3 hold the sums, 4 and 5 rows of A, 6
// and 7 columns of B.
template <class Tiles, int R, int C>
void block_sums(const AmxProduct& t) {
  const int64_t a_stride = t.a_pitch * static_cast<int64_t>(sizeof(Pair));
  const int64_t c_stride = t.c_pitch * static_cast<int64_t>(sizeof(float));
  constexpr int64_t b_stride = pair_width * sizeof(Pair);
  float* low = t.c + tile_rows * t.c_pitch;
  if (t.add) {
    Tiles::template load<0>(t.c, c_stride);
    if constexpr (C > 1) Tiles::template load<1>(t.c + lanes, c_stride);
    if constexpr (R > 1) Tiles::template load<2>(low, c_stride);
    if constexpr (R > 1 && C > 1) Tiles::template load<3>(low + lanes, c_stride);
  } else {
    Tiles::template zero<0>();
    if constexpr (C > 1) Tiles::template zero<1>();
    if constexpr (R > 1) Tiles::template zero<2>();
    if constexpr (R > 1 && C > 1) Tiles::template zero<3>();
  }
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
      Tiles::template load<5>(t.a + tile_rows * t.a_pitch + p, a_stride);
      Tiles::template multiply_bfloat16<2, 5, 6>();
      if constexpr (C > 1) Tiles::template multiply_bfloat16<3, 5, 7>();
    }
  }
  Tiles::template store<0>(t.c, c_stride);
  if constexpr (C > 1) Tiles::template store<1>(t.c + lanes, c_stride);
  if constexpr (R > 1) Tiles::template store<2>(low, c_stride);
  if constexpr (R > 1 && C > 1) Tiles::template store<3>(low + lanes, c_stride);
}

__mmask16 columns_from(const PairTile& t, int64_t j) {
  return static_cast<__mmask16>((1u << min_of(t.columns - j, lanes)) - 1);
}

// What a block is added to.
void read_sums(float* sums, const PairTile& t, int64_t rows) {
  for (int64_t j = 0; j < t.columns; j += lanes)
    for (int64_t i = 0; i < rows; ++i)
      _mm512_store_ps(sums + i * pair_width + j,
                      _mm512_maskz_loadu_ps(columns_from(t, j), t.c + i * t.c_rs + j));
}

// Writes a block of sums where the tile's product belongs, as pair kernels do.
__attribute__((target("avx512bf16"))) void write_sums(const PairTile& t, const float* sums,
                                                      int64_t rows) {
  for (int64_t j = 0; j < t.columns; j += lanes) {
    const __mmask16 keep = columns_from(t, j);
    for (int64_t i = 0; i < rows; ++i) {
      const __m512 sum = _mm512_load_ps(sums + i * pair_width + j);
      if (t.narrow == nullptr) {
        _mm512_mask_storeu_ps(t.c + i * t.c_rs + j, keep, sum);
        continue;
      }
      const auto halves = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum));
      _mm256_mask_storeu_epi16(t.narrow + i * t.c_rs + j, keep, halves);
    }
  }
}

using BlockKernel = void (*)(const AmxProduct&);
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

void amx_product(const AmxProduct& p, int64_t rows, int64_t columns) {
  with_tiles(tile_ways().bfloat16, [&](auto tiles) {
    const auto& kernels = block_kernels<decltype(tiles)>;
    AmxProduct block = p;
    for (int64_t j = 0; j < columns; j += pair_width, block.b += p.b_pitch) {
      for (int64_t i = 0; i < rows; i += amx_rows) {
        block.a = p.a + i * p.a_pitch;
        block.c = p.c + i * p.c_pitch + j;
        kernels[rows - i > tile_rows][columns - j > lanes](block);
      }
    }
  });
}

void amx_tile(const PairTile& t, int64_t rows) {
  alignas(64) float room[amx_rows * pair_width];
  for (int64_t i = 0; i < rows; i += amx_rows) {
    const int64_t here = min_of(rows - i, amx_rows);
    PairTile block = t;
    block.a += i * t.a_pitch;
    if (t.narrow != nullptr)
      block.narrow += i * t.c_rs;
    else
      block.c += i * t.c_rs;
    if (t.narrow == nullptr && here % tile_rows == 0 && t.columns % lanes == 0) {
      amx_product({t.pairs, block.a, t.a_pitch, t.b, 0, block.c, t.c_rs, t.add}, here, t.columns);
      continue;
    }
    if (t.add) read_sums(room, block, here);
    amx_product({t.pairs, block.a, t.a_pitch, t.b, 0, room, pair_width, t.add}, here, t.columns);
    write_sums(block, room, here);
  }
}

#else

bool has_amx() { return false; }

#endif

}  // namespace facula::cpu::FACULA_ISA
