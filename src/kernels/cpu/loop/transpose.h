// Copies between memory whose innermost dimensions differ: tiles are transposed in registers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula::cpu {

// to[r * to_step + c * size] = from[c * from_step + r * size] for r < rows, c < columns, in bytes:
// the innermost dimension of `to` is c and that of `from` is r. Sizes of 1, 2, 4, 8 and 16 bytes.
void transpose_plane(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows,
                     int64_t columns, size_t size);

}  // namespace facula::cpu
