// Short copies without a call: rows of a few cache lines.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA {

template <size_t size>
[[gnu::always_inline]] inline void copy_ends(char* to, const char* from, size_t bytes) {
  char first[size], last[size];
  __builtin_memcpy(first, from, size);
  __builtin_memcpy(last, from + bytes - size, size);
  __builtin_memcpy(to, first, size);
  __builtin_memcpy(to + bytes - size, last, size);
}

// Fewer bytes than a line: the first and the last of them, which overlap.
[[gnu::always_inline]] inline void copy_short(char* to, const char* from, size_t bytes) {
  if (bytes >= 32) return copy_ends<32>(to, from, bytes);
  if (bytes >= 16) return copy_ends<16>(to, from, bytes);
  if (bytes >= 8) return copy_ends<8>(to, from, bytes);
  if (bytes >= 4) return copy_ends<4>(to, from, bytes);
  for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

// Copies `bytes` between places that do not overlap. Whole lines are moved by vectors; the last one
// overlaps those before it.
[[gnu::always_inline]] inline void copy_bytes(char* to, const char* from, size_t bytes) {
  constexpr size_t line = 64, most = 4096;
  if (bytes < line) return copy_short(to, from, bytes);
  if (bytes > most) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t i = 0; i + line < bytes; i += line) __builtin_memcpy(to + i, from + i, line);
  __builtin_memcpy(to + bytes - line, from + bytes - line, line);
}

// The same where the places may overlap.
[[gnu::always_inline]] inline void move_bytes(char* to, const char* from, size_t bytes) {
  if (to + bytes <= from || from + bytes <= to) return copy_bytes(to, from, bytes);
  std::memmove(to, from, bytes);
}

}  // namespace facula::cpu::FACULA_ISA
