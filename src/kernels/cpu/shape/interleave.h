// Elements of some tensors in turns.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

inline constexpr size_t most_interleaved = 4;

// to[i * count + k] = element i of from[k], for i from `begin` to `end` and k below count, which is
// from 2 to most_interleaved.
FACULA_PER_ISA(void interleave(const void* const* from, size_t count, size_t itemsize,
                               int64_t begin, int64_t end, void* to);)

}  // namespace facula::cpu
