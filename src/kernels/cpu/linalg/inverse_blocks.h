// Inverses of larger matrices by blocks: nearly all of the work is matrix products. Built once per
// instruction set.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // The inverse of a (n x n row by row), column by column, for float, double and their complex
    // numbers. Returns 0, or the number, from 1, of the first pivot that is zero.
    template <class T> int32_t invert_by_blocks(const T* a, int64_t n, T* inverse);)

}  // namespace facula::cpu
