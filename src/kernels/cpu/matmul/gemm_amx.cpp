#include "kernels/cpu/matmul/gemm_amx.h"

#include "core/environment.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__) && defined(__linux__)
namespace {

#define FACULA_AMX __attribute__((target("amx-tile,amx-bf16,avx512bf16")))

constexpr int64_t lanes = pair_width / 2;  // columns of a tile
constexpr int64_t tile_rows = 16;

// The system grants the registers of tiles to a process that asks for them.
bool ask_for_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig eight_full_tiles;

// GCC's tile intrinsics do not say that they read and write memory.
[[gnu::always_inline]] inline void memory_barrier() { asm volatile("" ::: "memory"); }

FACULA_AMX void configure_tiles() {
  memory_barrier();
  _tile_loadconfig(&eight_full_tiles);
}
FACULA_AMX void release_tiles() { _tile_release(); }

// sums[16 R, 16 C] = A B, in rows of pair_width. Tiles 0 to 3 hold the sums, 4 and 5 rows of A, 6
// and 7 columns of B.
template <int R, int C>
FACULA_AMX void block_sums(const PairTile& t, float* sums) {
  constexpr int64_t a_stride = pair_pitch * sizeof(Pair), b_stride = pair_width * sizeof(Pair);
  constexpr int64_t sum_stride = pair_width * sizeof(float);
  memory_barrier();
  _tile_zero(0);
  if constexpr (C > 1) _tile_zero(1);
  if constexpr (R > 1) _tile_zero(2);
  if constexpr (R > 1 && C > 1) _tile_zero(3);
  for (int64_t p = 0; p < t.pairs; p += amx_pairs) {
    const Pair* b = t.b + p * pair_width;
    _tile_loadd(6, b, b_stride);
    _tile_loadd(4, t.a + p, a_stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (C > 1) {
      _tile_loadd(7, b + lanes, b_stride);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (R > 1) {
      _tile_loadd(5, t.a + tile_rows * pair_pitch + p, a_stride);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (C > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, sum_stride);
  if constexpr (C > 1) _tile_stored(1, sums + lanes, sum_stride);
  if constexpr (R > 1) _tile_stored(2, sums + tile_rows * pair_width, sum_stride);
  if constexpr (R > 1 && C > 1) _tile_stored(3, sums + tile_rows * pair_width + lanes, sum_stride);
  memory_barrier();
}

// Writes a block of sums where the tile's product belongs, as pair kernels do.
FACULA_AMX void write_sums(const PairTile& t, const float* sums, int64_t rows) {
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
constexpr BlockKernel block_kernels[2][2] = {{block_sums<1, 1>, block_sums<1, 2>},
                                             {block_sums<2, 1>, block_sums<2, 2>}};

}  // namespace

bool has_amx() {
  static const bool offered = [] {
    const char* wish = environment_value("FACULA_AMX");
    return (wish == nullptr || *wish != '0') && __builtin_cpu_supports("amx-tile") &&
           __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16") &&
           ask_for_tiles();
  }();
  return offered;
}

AmxScope::AmxScope() : on_(has_amx()) {
  if (on_) configure_tiles();
}
AmxScope::~AmxScope() {
  if (on_) release_tiles();
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
    block_kernels[here > tile_rows][t.columns > lanes](block, sums);
    write_sums(block, sums, here);
  }
}

#else

bool has_amx() { return false; }
#if defined(__AVX512F__)
AmxScope::AmxScope() : on_(false) {}
AmxScope::~AmxScope() {}
void amx_tile(const PairTile&, int64_t) {}
#endif

#endif

}  // namespace facula::cpu::FACULA_ISA
