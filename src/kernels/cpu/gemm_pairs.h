// Products of bfloat16 by the instruction that multiplies pairs and adds both to a float.
#pragma once
#include "kernels/cpu/gemm_driver.h"

namespace facula::cpu::FACULA_ISA {

// Whether this build and processor have the instruction.
bool has_pair_products();

// C = A B; needs has_pair_products(), m, n, k >= 1, alpha 1 and beta 0. Each sum of two products is
// rounded as AVX-512 BF16 defines it: to nearest even, subnormal numbers as zeros.
void pair_product(const Product<float, BFloat16>& p);

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

}  // namespace facula::cpu::FACULA_ISA
