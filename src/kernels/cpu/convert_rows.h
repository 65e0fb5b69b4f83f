// Rows of copies and conversions, built once per instruction set.
#pragma once
#include "core/dtype.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/loop.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // Copies elements of so many bytes; null for a size that no dtype has.
    RowFn mover(size_t bytes);
    // Converts between two different dtypes; null where there is no conversion.
    RowFn converter(DType from, DType to);
    // Stores the element that the context points to, of so many bytes.
    RowFn filler(size_t bytes);)

}  // namespace facula::cpu
