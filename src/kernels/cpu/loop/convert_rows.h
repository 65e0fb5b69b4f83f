// Rows of copies and conversions, built once per instruction set.
#pragma once
#include "core/dtype.h"
#include "kernels/cpu/loop/loop.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // Copies elements of `bytes` bytes; null for a size that no dtype has.
    RowFn mover(size_t bytes);
    // Converts between two different dtypes; null where there is no conversion.
    RowFn converter(DType from, DType to);
    // Stores the element of `bytes` bytes that the context points to.
    RowFn filler(size_t bytes);)

}  // namespace facula::cpu
