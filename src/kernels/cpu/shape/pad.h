// Padding: every element of the result is one of the input's or a number.
#pragma once
#include "core/small_vector.h"
#include "core/tensor.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// One dimension. `source` holds, by position in the result, that in the input, -1 where the number
// stands; from `begin` to `end` positions of the input follow each other.
struct PadDim {
  int64_t size;
  const int64_t* source;
  int64_t begin, end;
  int64_t in_stride, out_stride;  // in elements
};

using PadDims = SmallVector<PadDim, 6>;

// Dimensions from the outermost of the result's memory on; the last one moves whole units of
// `unit` neighbouring elements, of which both strides are multiples.
struct PadPlan {
  PadDims dims;
  int64_t unit = 1;
};

// out = self with the positions of each dimension from `sources`; `value` holds one element of
// out's dtype.
void pad_elements(const Tensor& self, const Tensor& out, const PadDims& sources,
                  const Tensor& value);

FACULA_PER_ISA(void pad_rows(const PadPlan& plan, size_t itemsize, const void* from, void* to,
                             const void* value);)

}  // namespace facula::cpu
