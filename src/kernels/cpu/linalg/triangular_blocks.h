// Systems with a triangular matrix, halved until one half's matrix is a block of its diagonal: what
// lies beside the blocks is matrix products. Built once per instruction set.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// A (n x n) X = B, with B in X (n x k) at first. Strides count elements; X does not overlap A.
template <class T>
struct TriangularSystem {
  int64_t n, k;
  const T* a;
  int64_t a_rs, a_cs;
  T* x;
  int64_t x_rs, x_cs;
  bool upper, unit;  // unit: the diagonal is not read, and counts as ones
};

FACULA_PER_ISA(
    // For float, double and their complex numbers.
    template <class T> void solve_triangular_blocks(const TriangularSystem<T>& s);)

}  // namespace facula::cpu
