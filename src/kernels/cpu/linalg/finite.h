// Whether elements are finite: LAPACK may not return where a matrix has an infinity or NaN.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/complex.h"

namespace facula::cpu {

template <class T>
bool all_finite(const T* x, int64_t n) {
  // A finite number times zero is zero, anything else is NaN.
  if constexpr (is_complex_v<T>) {
    return all_finite(&x->re, 2 * n);
  } else {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i] * T(0);
    return sum == T(0);
  }
}

}  // namespace facula::cpu
