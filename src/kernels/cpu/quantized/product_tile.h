// One tile of a product of bytes.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

inline constexpr int64_t tile_rows = 6, tile_columns = 64;

// sums[m, n] = A B, rows of sums tile_columns apart. Rows of A have 4 * steps bytes; B is packed
// (product.h), its panels 64 * steps bytes apart. Whole panels of sums are written.
struct ByteTile {
  int64_t steps;
  int64_t m, n;  // at most tile_rows and tile_columns
  const uint8_t* a;
  int64_t a_pitch;
  const int8_t* b;
  int32_t* sums;
};

FACULA_PER_ISA(void byte_tile(const ByteTile& t);)

}  // namespace facula::cpu
