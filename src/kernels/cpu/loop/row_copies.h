// Rows of bytes that are copied one by one, built once per instruction set.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Rows of `bytes` each; neighbours are `step` bytes apart.
struct ByteRows {
  const char* first;
  int64_t step;
  int64_t bytes;
};

FACULA_PER_ISA(
    // Copies `count` rows to places `to_step` bytes apart; nothing overlaps.
    void copy_rows(const ByteRows& from, int64_t count, char* to, int64_t to_step);
    // Copies the rows of a table of `rows` that n indices (int64_t or int32_t) name, densely.
    // False where an index is outside of the table; rows from there on are left unwritten.
    bool take_rows(const ByteRows& table, int64_t rows, const void* indices, int64_t n, char* to);
    bool take_rows_narrow(const ByteRows& table, int64_t rows, const void* indices, int64_t n,
                          char* to);)

}  // namespace facula::cpu
