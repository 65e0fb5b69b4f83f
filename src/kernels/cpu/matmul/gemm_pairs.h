// Products of bfloat16 by the instruction that multiplies pairs and adds both to a float.
#pragma once
#include "kernels/cpu/matmul/gemm_driver.h"

namespace facula::cpu::FACULA_ISA {

// Whether this build and processor have the instruction.
bool has_pair_products();
// Whether products by it, or by tiles, also take less time than by floats. On Intel the instruction
// takes four times as long as a multiply-add and does twice its work; FACULA_PAIRS says otherwise.
bool has_fast_pairs();

// C = A B; needs has_pair_products(), m, n, k >= 1, alpha 1 and beta 0. Each sum of two products is
// rounded as AVX-512 BF16 defines it: to nearest even, subnormal numbers as zeros.
void pair_product(const Product<float, BFloat16>& p);
// The same for a result of bfloat16 with contiguous rows, finished as its arguments ask for; p.c is
// not used, and p.k is at most pair_steps.
void pair_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result);

// The same for a B whose rows are dense, read where it lies, once for each max_direct_rows rows of
// A.
void direct_pair_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result);

inline constexpr int64_t max_direct_rows = 8;
inline constexpr int64_t pair_steps = 1024;  // along k that one pass takes at most

// A matrix B (k, n) that is the right side of several products, packed once.
class PairPanels {
 public:
  PairPanels(const BFloat16* b, int64_t b_rs, int64_t b_cs, int64_t k, int64_t n);
  // C[m, n] = A B, or C + A B; rows of A and C are contiguous. Rounds as pair_product does.
  void multiply(int64_t m, const BFloat16* a, int64_t a_rs, float* c, int64_t c_rs, bool add) const;

 private:
  Product<float, BFloat16> shape_;
  Scratch<uint32_t> packed_;
};

#if defined(__AVX512F__)

// Two neighbours along k, as the processor wants them.
using Pair = uint32_t;

inline constexpr int64_t pair_depth = pair_steps / 2;   // pairs that one kernel call takes at most
inline constexpr int64_t pair_pitch = pair_depth + 16;  // between packed rows of A
inline constexpr int64_t pair_width = 32;               // columns of a panel of B

// c[rows, columns] = A B, or that added to what is there; rows of A are pair_pitch apart, those of
// B pair_width.
struct PairTile {
  int64_t pairs;
  const Pair *a, *b;
  float* c;
  int64_t c_rs;
  int64_t columns;  // at most pair_width; what lies beyond is left alone
  bool add;
  BFloat16* narrow = nullptr;    // where A B goes instead, rows c_rs apart
  int64_t a_pitch = pair_pitch;  // between rows of A; another one for tiles only
};
using PairKernel = void (*)(const PairTile&);
PairKernel pair_kernel(int rows, int64_t columns);

[[gnu::always_inline]] inline Pair pair_of(const BFloat16* low, const BFloat16* high) {
  return low->bits | (high ? static_cast<Pair>(high->bits) << 16 : 0);
}

// Two vectors interleaved element by element, as two vectors of pairs.
struct ZippedPairs {
  __m512i first, second;
};
[[gnu::always_inline]] inline ZippedPairs zip_vectors(__m512i low, __m512i high) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  return {_mm512_permutex2var_epi16(low, first, high),
          _mm512_permutex2var_epi16(low, second, high)};
}

// Two rows of a panel interleaved element by element.
[[gnu::always_inline]] inline void zip_rows(Pair* to, const BFloat16* low, const BFloat16* high) {
  const ZippedPairs pairs = zip_vectors(_mm512_loadu_si512(low), _mm512_loadu_si512(high));
  _mm512_storeu_si512(to, pairs.first);
  _mm512_storeu_si512(to + pair_width / 2, pairs.second);
}

#endif

}  // namespace facula::cpu::FACULA_ISA
