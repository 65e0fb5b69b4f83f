// Small matrices that stand row by row, column by column.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // `count` matrices (m x n), one behind the other, row by row in `from`.
    template <class T>
    void turn_matrices(T* to, const T* from, int64_t count, int64_t m, int64_t n);)

}  // namespace facula::cpu
