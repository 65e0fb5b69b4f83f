// Places of many values in one sorted row, searched for side by side; built once per instruction
// set.
#pragma once
#include "core/half.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // Whether each element is at least the one before it, and none is NaN.
    template <class T> bool rises(const T* row, int64_t length);
    // to[i] = how many elements of a row that rises are below v[i] (right: not above v[i]; for a
    // v[i] that is NaN all of them).
    template <class T>
    void find_places(const T* row, int64_t length, const T* v, int64_t n, bool right, int64_t* to);)

}  // namespace facula::cpu
