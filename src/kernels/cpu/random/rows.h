// Loops of the distributions, built once per instruction set. None of them fuses or reorders
// arithmetic by itself, so that every set draws the same numbers.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Uniforms of [from, from + width): rounding may reach the excluded end `to`, which then is `from`.
struct UniformRange {
  float from, width, to;
};

FACULA_PER_ISA(
    // The loops of core/twister_loops.h.
    void twist_words(uint32_t* state);
    void temper_words(const uint32_t* state, int64_t n, uint32_t* out);
    // Uniforms of [0, 1) in double from pairs of words.
    void unit_row(const uint32_t* words, int64_t n, double* out);
    // The normals that each two neighbours of n + 1 uniforms make, as pairs; the last bit of a
    // double may differ from PyTorch's.
    void normal_pairs(const double* units, int64_t n, double* cosines, double* sines);
    // One number of each word.
    void uniform_row(const uint32_t* words, int64_t n, UniformRange range, float* out);
    // Uniforms in blocks of 16 become normals, as PyTorch does it for tensors from that size on.
    void normal_row(float* x, int64_t blocks, float mean, float std);
    // Whether 53 bits of a pair of words are below the limit.
    void below_row(const uint32_t* words, int64_t n, uint64_t limit, uint8_t* out);
    // scale * log(1 - u) of a pair's uniform u.
    void exponential_row(const uint32_t* words, int64_t n, double scale, float* out);)

}  // namespace facula::cpu
