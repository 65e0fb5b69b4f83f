// Products of bfloat16 by tiles of 16 rows (AMX), over operands packed for pair products.
#pragma once
#include "kernels/cpu/matmul/gemm_pairs.h"
#include "kernels/cpu/simd/amx.h"

namespace facula::cpu::FACULA_ISA {

// Whether products of bfloat16 go by tiles here (simd/amx.h).
bool has_amx();

#if defined(__AVX512F__)

// Along k a tile takes as many pairs; packed operands are filled up with zeros to a multiple.
inline constexpr int64_t amx_pairs = 16;
inline constexpr int64_t amx_rows = 32;  // that one block of sums has at most

// Gives this thread its tiles while it lives, where there are any.
class AmxScope {
 public:
  AmxScope();
  ~AmxScope();
  AmxScope(const AmxScope&) = delete;
  explicit operator bool() const { return way_ != TileWay::none; }

 private:
  TileWay way_;
};

// Like a pair kernel, for any number of rows; needs an AmxScope on this thread. t.pairs is a
// multiple of amx_pairs, and memory behind t.a goes on to a multiple of amx_rows rows. Sums of the
// even and of the odd terms are rounded apart, subnormal numbers count as zeros.
void amx_tile(const PairTile& t, int64_t rows);

// A product whose operands and sums have room up to whole blocks: rows of A and of C to a multiple
// of 16 and to what a panel of B has in columns. Rows are `a_pitch` and `c_pitch` apart, the panels
// of B `b_pitch`.
struct AmxProduct {
  int64_t pairs;
  const Pair* a;
  int64_t a_pitch;
  const Pair* b;
  int64_t b_pitch;
  float* c;
  int64_t c_pitch;
  bool add;
};
// C = A B, or C + A B, for any number of rows and columns; as amx_tile, but without a copy of sums.
void amx_product(const AmxProduct& p, int64_t rows, int64_t columns);

#endif

}  // namespace facula::cpu::FACULA_ISA
