// Rows of reads and writes through byte offsets, built once per instruction set.
#pragma once
#include <atomic>

#include "kernels/cpu/index/index.h"
#include "kernels/cpu/loop/loop.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// How indices become offsets: those from `lowest` (0, or -size where they wrap) to size - 1 hold.
struct OffsetRule {
  int64_t lowest, size, step;
  bool first;  // offsets are set, not added to
};

// The context of row functions that read indices. After an index that is out of range the rest of
// the row is left unwritten.
struct IndexedContext {
  OffsetRule rule;
  std::atomic<bool>* outside;
};

// Dense rows that go to places: row i of `values` to `to` + i * to_step + offsets[i], in bytes.
struct DenseRows {
  const int64_t* offsets;
  char* to;
  const char* values;
  int64_t to_step, value_step;
  int64_t width, count;  // elements of a row, rows
};

// Rows that read at the same offsets: element j of row i of `to` is that at offsets[j] of row i of
// `from`. Steps between rows are in bytes.
struct SharedOffsets {
  char* to;
  const char* from;
  const int64_t* offsets;
  int64_t to_step, from_step;
  int64_t width;  // elements of a row
};

// Elements whose offset is `low` or above it by less than `span`; others are passed over.
struct OffsetRange {
  int64_t low;
  uint64_t span;
};

// How values are put: any elements of a row of positions, dense rows by one call, and of either
// those that go to a range of places. All but the first may be null.
struct Scattering {
  RowFn row;
  void (*dense)(const DenseRows& rows) = nullptr;
  void (*between)(const OffsetRange& range, char* const* data, const int64_t* steps,
                  int64_t n) = nullptr;
  void (*dense_between)(const OffsetRange& range, const DenseRows& rows) = nullptr;
};

FACULA_PER_ISA(
    // Offsets of n indices, int64_t or int32_t; false where one does not hold.
    bool index_offsets(const void* indices, int64_t n, OffsetRule rule, int64_t* to);
    bool index_offsets_narrow(const void* indices, int64_t n, OffsetRule rule, int64_t* to);
    // Operands: out, offsets, from; `bytes` is the size of an element.
    RowFn gather_row(size_t bytes);
    // Rows from `begin` to `end`; `bytes` is the size of an element.
    void gather_columns(size_t bytes, const SharedOffsets& rows, int64_t begin, int64_t end);
    // Operands: out, indices (int64_t or int32_t), from; the context is an IndexedContext.
    RowFn gather_row_wide(size_t bytes); RowFn gather_row_narrow(size_t bytes);
    // Operands: offsets, to, values.
    Scattering scatter_row(size_t bytes);
    // Operands: indices (int64_t), to, values; the context is an IndexedContext. The second adds to
    // what is there, and is null for a dtype without sums.
    RowFn put_row(size_t bytes); RowFn put_add_row(DType dtype, const char* op);
    // As scatter_row, combining with what is there; null for a dtype that has no such reduction.
    Scattering reduce_row(DType dtype, Reduction how, const char* op);)

}  // namespace facula::cpu
