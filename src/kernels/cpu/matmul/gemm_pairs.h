// Products of bfloat16 by pairs along k, both of whose products are added to a float.
#pragma once
#include "kernels/cpu/matmul/gemm_driver.h"
#include "kernels/cpu/matmul/gemm_pair_kernel.h"

namespace facula::cpu::FACULA_ISA {

// Whether this build multiplies pairs: all processors with AVX-512 do, by the instruction or not.
#if defined(__AVX512F__)
inline constexpr bool has_pair_products = true;
#else
inline constexpr bool has_pair_products = false;
#endif

// C = A B; needs has_pair_products, m, n, k >= 1, alpha 1 and beta 0. Each sum of two products is
// rounded as AVX-512 BF16 defines it: to nearest even, subnormal numbers as zeros.
void pair_product(const Product<float, BFloat16>& p);
// The same for a result of bfloat16 with contiguous rows, finished as its arguments ask for; p.c is
// not used, and p.k is at most pair_steps.
void pair_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result);

// The same for a B whose rows are dense, read where it lies, once for each max_direct_rows rows of
// A.
void direct_pair_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result);

// The same for very few rows and any p.k: up to max_wide_rows where rows of B are dense, else
// max_column_rows where its columns are.
void in_place_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result);

// The same for few rows of A: each thread packs the panels of B that it multiplies, one at a time,
// so that they stay in a near cache.
void own_panel_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result);

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
