// Products so small that B stays in the first-level cache: both operands are read where they lie,
// and only a B whose rows are not dense is copied.
#pragma once
#include "kernels/cpu/matmul/gemm.h"

namespace facula::cpu::FACULA_ISA {

// Whether small_rows takes a product, as far as its operands' sizes and layouts go: one with dense
// rows of C. False for all but float and double, and where a set has no masks.
template <class T>
bool fits_small(const GemmArgs<T>& g);

// Rows [begin, end) of a product that fits. Each result is one sum over k, in its order, as in
// packed products; `g.row` may stand for the rows of C.
template <class T>
void small_rows(const GemmArgs<T>& g, int64_t begin, int64_t end);

}  // namespace facula::cpu::FACULA_ISA
