// Short copies without a call: rows of a few cache lines.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/isa.h"

namespace facula::cpu::FACULA_ISA {

// Copies `bytes` between places that do not overlap. Whole lines are moved by vectors; the last one
// overlaps those before it.
[[gnu::always_inline]] inline void copy_bytes(char* to, const char* from, size_t bytes) {
  constexpr size_t line = 64, most = 1024;
  if (bytes < line || bytes > most) {
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
