// One tile of a product of bytes.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/amx.h"

namespace facula::cpu {

inline constexpr int64_t tile_rows = 16, tile_columns = 64;

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

namespace FACULA_ISA {

// Computes tiles of one depth on this thread, by AMX where there is some: it holds the thread's
// registers then, of which only one such object may make use at a time.
class ByteTiles {
 public:
  explicit ByteTiles(int64_t steps);
  ~ByteTiles();
  ByteTiles(const ByteTiles&) = delete;

  // How many rows at a time suit the instructions.
  int64_t rows() const;
  void multiply(const ByteTile& t);

 private:
  void configure(int64_t rows);

  int64_t steps_, configured_rows_ = 0;
  TileWay way_;
};

}  // namespace FACULA_ISA

}  // namespace facula::cpu
