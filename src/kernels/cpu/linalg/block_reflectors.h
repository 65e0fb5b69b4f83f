// QR factors of larger matrices and the products of their reflectors, by blocks: most of the work
// is matrix products (Schreiber and Van Loan, A storage-efficient WY representation, 1989). Built
// once per instruction set; for float and double.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // Householder vectors and R (m x n, column by column) in place, as LAPACK's geqrf leaves them.
    // False, with nothing done, for a matrix whose squares leave the range of T.
    template <class T> bool geqrf_blocks(T* a, int64_t m, int64_t n, T* tau);
    // The first n columns of the product of k reflectors (m x n, column by column) in place.
    template <class T> void orgqr_blocks(T* q, int64_t m, int64_t n, int64_t k, const T* tau);)

}  // namespace facula::cpu
