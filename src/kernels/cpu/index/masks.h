// Rows chosen by masks, built once per instruction set. A mask's byte counts unless it is zero.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Moves elements between a row of n elements and the `found` ones of it that stand together; stops
// after `found` elements, whatever the mask has become.
using MaskedRowFn = void (*)(const uint8_t* mask, int64_t n, const void* from, void* to,
                             int64_t found);

FACULA_PER_ISA(
    // How many of n bytes are not zero.
    int64_t count_set(const uint8_t* mask, int64_t n);
    // Which of n bytes are not zero; returns how many.
    int64_t places_of_set(const uint8_t* mask, int64_t n, int32_t* places);
    // to[k] = places[k] + add.
    void write_places(const int32_t* places, int64_t n, int64_t add, int64_t* to);
    // The chosen elements of `from` side by side; `bytes` is the size of an element.
    MaskedRowFn compress_row(size_t bytes);
    // The chosen elements of `to` from elements that stand side by side.
    MaskedRowFn spread_row(size_t bytes);)

}  // namespace facula::cpu
