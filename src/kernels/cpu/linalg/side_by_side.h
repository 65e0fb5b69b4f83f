// Kernels for many small matrices, which take as many of them at once as fill a vector: an element
// of each stands in one place, so no loop has a rest and no pivot a branch. Built once per
// instruction set; for float and double.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Rows and columns, beyond which the matrices of a vector would leave the caches near the core.
inline constexpr int64_t side_by_side_order = 32;

FACULA_PER_ISA(
    // Each takes the first matrices of a batch of `count`, as many as make whole vectors, and
    // returns how many that were; the others are for the caller.

    // Of matrices n x n row by row, given by their upper or lower triangles, the factors U with U^T
    // U equal to them, row by row with zeros below; info of each is 0 or the order, from 1, of the
    // first leading minor that is not positive. The factors may take the matrices' place.
    template <class T> int64_t cholesky_side_by_side(const T* a, bool lower, T* factor,
                                                     int64_t count, int64_t n, int32_t* info);
    // Householder vectors and R (m x n, column by column) in place, as LAPACK's geqrf leaves them.
    // Stops at matrices whose squares leave the range of T.
    template <class T>
    int64_t geqrf_side_by_side(T* a, int64_t count, int64_t m, int64_t n, T* tau);
    // The first n columns of the product of k reflectors (m x n, column by column) in place.
    template <class T>
    int64_t orgqr_side_by_side(T* q, int64_t count, int64_t m, int64_t n, int64_t k, const T* tau);
    // Inverses, n x n row by row; info of each is 0 or the number, from 1, of a pivot that is zero.
    template <class T>
    int64_t invert_side_by_side(const T* a, int64_t count, int64_t n, T* inverse, int32_t* info);
    // Solves triangular systems in place in x (n x k row by row); a is n x n row by row.
    template <class T>
    int64_t solve_triangular_side_by_side(const T* a, T* x, int64_t count, int64_t n, int64_t k,
                                          bool upper, bool unit);
    // Solves with the LU factors of factor_small_batch, in place in x (n x k column by column).
    template <class T> int64_t solve_side_by_side(const T* lu, const int32_t* pivots, T* x,
                                                  int64_t count, int64_t n, int64_t k);)

}  // namespace facula::cpu
