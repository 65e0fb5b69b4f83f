// Uniforms from the words of a generator.
#pragma once
#include <cstdint>

namespace facula::dist {

// Successive words as one of 64 bits, the first in front.
[[gnu::always_inline]] inline uint64_t pair_at(const uint32_t* words, int64_t i) {
  return static_cast<uint64_t>(words[2 * i]) << 32 | words[2 * i + 1];
}

// Uniforms of [0, 1) from one output each. Signed integers convert faster.
[[gnu::always_inline]] inline float unit_float(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word & 0xffffffu)) * 0x1p-24f;
}
[[gnu::always_inline]] inline uint64_t unit_bits(uint64_t word) {
  return word & ((uint64_t{1} << 53) - 1);
}
[[gnu::always_inline]] inline double unit_double(uint64_t word) {
  return static_cast<double>(static_cast<int64_t>(unit_bits(word))) * 0x1p-53;
}

}  // namespace facula::dist
