// gelu (with erf) of float sums whose results are then rounded to bfloat16.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA {

// An Activation of dense floats, to 2^-15 of the result: it has a third of the steps of the one for
// floats.
void coarse_gelu(char* const* data, const int64_t* steps, int64_t n, const void* params);

}  // namespace facula::cpu::FACULA_ISA
