// Products of bfloat16 by the instruction that multiplies pairs and adds both to a float.
#pragma once
#include "kernels/cpu/gemm_driver.h"

namespace facula::cpu::FACULA_ISA {

// Whether this build and processor have the instruction.
bool has_pair_products();

// C = A B; needs has_pair_products(), m, n, k >= 1, alpha 1 and beta 0. Each sum of two products is
// rounded as AVX-512 BF16 defines it: to nearest even, subnormal numbers as zeros.
void pair_product(const Product<float, BFloat16>& p);

}  // namespace facula::cpu::FACULA_ISA
