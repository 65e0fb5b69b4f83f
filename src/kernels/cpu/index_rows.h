// Rows of reads and writes through byte offsets, built once per instruction set.
#pragma once
#include "kernels/cpu/index.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/loop.h"

namespace facula::cpu {

// How indices become offsets: those from `lowest` (0, or -size where they wrap) to size - 1 hold.
struct OffsetRule {
  int64_t lowest, size, step;
  bool first;  // offsets are set, not added to
};

FACULA_PER_ISA(
    // Offsets of n indices, int64_t or int32_t; false where one does not hold.
    bool index_offsets(const void* indices, int64_t n, OffsetRule rule, int64_t* to);
    bool index_offsets_narrow(const void* indices, int64_t n, OffsetRule rule, int64_t* to);
    // Operands: out, offsets, from; elements of so many bytes.
    RowFn gather_row(size_t bytes);
    // Operands: offsets, to, values.
    RowFn scatter_row(size_t bytes);
    // The same, combining with what is there; null for a dtype that has no such reduction.
    RowFn reduce_row(DType dtype, Reduction how);)

}  // namespace facula::cpu
