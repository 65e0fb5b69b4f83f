// Selection by a condition, built once per instruction set.
#pragma once
#include "kernels/cpu/elementwise/pointwise.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // The loop for elements of that size: a result, bytes of the condition, and two operands.
    LoopFn select_loop(size_t itemsize);)

}  // namespace facula::cpu
