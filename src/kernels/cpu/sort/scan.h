// Looking through many numbers at once, built once per instruction set.
#pragma once
#include <utility>

#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/sort/keys.h"

namespace facula::cpu {

inline constexpr int64_t scan_block = 128;

FACULA_PER_ISA(
    // Fills `keys` with those of n numbers, of the opposite order with `flip`; whether one lies
    // below `bound`. T: real numbers of any dtype.
    template <class T>
    bool keys_below(const T* x, int64_t n, bool flip, Key<T> bound, Key<T>* keys);
    // The least and the greatest of n >= 1 integers.
    template <class T> std::pair<T, T> extremes(const T* x, int64_t n);)

}  // namespace facula::cpu
