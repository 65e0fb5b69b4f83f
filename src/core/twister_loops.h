// The loops of the Mersenne twister, to be compiled for each instruction set: always inlined, so
// that no copy for a newer one is linked into code for all.
#pragma once
#include <cstdint>

namespace facula::twister {

inline constexpr int words = 624, shift = 397;

[[gnu::always_inline]] inline uint32_t temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

[[gnu::always_inline]] inline uint32_t twist(uint32_t here, uint32_t after, uint32_t far) {
  const uint32_t y = (here & 0x80000000u) | (after & 0x7fffffffu);
  return far ^ (y >> 1) ^ ((0u - (y & 1u)) & 0x9908b0dfu);
}

// The next 624 words of the state.
[[gnu::always_inline]] inline void twist_all(uint32_t* s) {
  for (int i = 0; i < words - shift; ++i) s[i] = twist(s[i], s[i + 1], s[i + shift]);
  for (int i = words - shift; i < words - 1; ++i)
    s[i] = twist(s[i], s[i + 1], s[i + shift - words]);
  s[words - 1] = twist(s[words - 1], s[0], s[shift - 1]);
}

// The outputs of n words.
[[gnu::always_inline]] inline void temper_all(const uint32_t* __restrict state, int64_t n,
                                              uint32_t* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = temper(state[i]);
}

}  // namespace facula::twister
