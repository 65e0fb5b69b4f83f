// Reductions of several blocks of memory into one, in the order of the blocks, so that the bits of
// the result do not depend on which rank came first.
#pragma once
#include <span>

#include "distributed/engine.h"

namespace facula::distributed {

// Raises if a reduction is not defined for a dtype.
void check_reduction(const char* call, Reduction reduction, DType dtype);
// output[i] = inputs[0][i] op inputs[1][i] op ...; 16-bit floats are added in float32 and rounded
// once. `output` may be one of the inputs.
void reduce(Reduction reduction, DType dtype, double factor, std::span<const void* const> inputs,
            void* output, int64_t count);

}  // namespace facula::distributed
