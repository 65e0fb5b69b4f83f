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

#endif

}  // namespace facula::cpu::FACULA_ISA
