// Tiles (AMX): the processor's instructions, and the same in plain C++ for processors without them.
//
// A tile is up to 16 rows of up to 64 bytes. A product of tiles takes 32-bit groups: rows of A are
// groups along k, a row of B holds the same group of k for each column.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

enum class TileWay : uint8_t { none, hardware, emulated };

struct TileWays {
  TileWay bfloat16 = TileWay::none, bytes = TileWay::none;
};
// How this process multiplies by tiles: what the processor, the system and FACULA_AMX allow. The
// first call asks the system for the registers, on behalf of all threads.
TileWays tile_ways();

inline constexpr int tile_count = 8, tile_rows_at_most = 16, tile_row_bytes = 64;

// Rows and bytes a row of each tile, as the processor reads them.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr void set(int tile, int64_t row_count, int64_t bytes) {
    rows[tile] = static_cast<uint8_t>(row_count);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

// Eight tiles of 16 rows and 64 bytes.
constexpr TileShapes full_tiles() {
  TileShapes shapes;
  for (int i = 0; i < tile_count; ++i) shapes.set(i, tile_rows_at_most, tile_row_bytes);
  return shapes;
}

#if defined(__x86_64__)

// As text for the assembler: GCC's intrinsics take tile numbers as literals only, and do not say
// that they read and write memory. A copy out of line would still run on any processor that gets
// here, since it is none but these instructions.
struct HardwareTiles {
  [[gnu::always_inline]] static void configure(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
  }
  [[gnu::always_inline]] static void release() { asm volatile("tilerelease" : : : "memory"); }
  template <int tile>
  [[gnu::always_inline]] static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  // Rows `stride` bytes apart.
  template <int tile>
  [[gnu::always_inline]] static void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  [[gnu::always_inline]] static void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
  }
  // sums += A B, of pairs of bfloat16.
  template <int sums, int a, int b>
  [[gnu::always_inline]] static void multiply_bfloat16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
  }
  // sums += A B, of four unsigned bytes by four signed ones.
  template <int sums, int a, int b>
  [[gnu::always_inline]] static void multiply_bytes() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
  }
};

#endif

// What one thread's tiles hold under emulation (amx.cpp).
struct EmulatedRegisters {
  TileShapes shapes;
  alignas(64) uint8_t bytes[tile_count][tile_rows_at_most][tile_row_bytes];
};
EmulatedRegisters& emulated_registers();
void emulated_multiply_bfloat16(int sums, int a, int b);
void emulated_multiply_bytes(int sums, int a, int b);

// The same calls as HardwareTiles, with the same results.
struct EmulatedTiles {
  static void configure(const TileShapes& shapes);
  static void release();
  template <int tile>
  static void zero() {
    std::memset(emulated_registers().bytes[tile], 0, sizeof emulated_registers().bytes[tile]);
  }
  template <int tile>
  static void load(const void* from, int64_t stride) {
    load_rows(tile, static_cast<const char*>(from), stride);
  }
  template <int tile>
  static void store(void* to, int64_t stride) {
    store_rows(tile, static_cast<char*>(to), stride);
  }
  template <int sums, int a, int b>
  static void multiply_bfloat16() {
    emulated_multiply_bfloat16(sums, a, b);
  }
  template <int sums, int a, int b>
  static void multiply_bytes() {
    emulated_multiply_bytes(sums, a, b);
  }

 private:
  static void load_rows(int tile, const char* from, int64_t stride);
  static void store_rows(int tile, char* to, int64_t stride);
};

// Calls f with the tiles of this way, by type: f(HardwareTiles{}) or f(EmulatedTiles{}).
template <class F>
[[gnu::always_inline]] inline void with_tiles(TileWay way, F&& f) {
#if defined(__x86_64__)
  if (way == TileWay::hardware) return f(HardwareTiles{});
#endif
  if (way == TileWay::emulated) f(EmulatedTiles{});
}

}  // namespace facula::cpu
