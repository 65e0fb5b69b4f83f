// LU factors of matrices of up to 32 rows and columns, and what is solved with them: for these a
// call of LAPACK takes longer than the work. Built once per instruction set.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

inline constexpr int64_t small_order = 32;

FACULA_PER_ISA(
    // Factors `count` matrices (m x n, column by column) in place as P L U. pivots[k] of each, from
    // 1, is the row that changed places with row k; info of each 0, or the number, from 1, of the
    // first pivot that is zero.
    template <class T> void factor_small_batch(T* a, int64_t count, int64_t m, int64_t n,
                                               int32_t* pivots, int32_t* info);
    // Solves with the factors of an n x n matrix, in place in the k columns of b. trans: 'N', 'T'
    // or 'C', the matrix itself, transposed, or conjugated besides.
    template <class T>
    void solve_small(const T* lu, const int32_t* pivots, char trans, T* b, int64_t n, int64_t k);)

}  // namespace facula::cpu
