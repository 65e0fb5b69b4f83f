// The larger and the smaller of two numbers; nan where either is.
#pragma once
#include "kernels/scalar/kinds.h"

namespace facula::scalar {
// The first that is nan, else the larger or the smaller.
template <class T>
inline T larger(T a, T b) {
  return a != a ? a : (a > b ? a : b);
}
template <class T>
inline T smaller(T a, T b) {
  return a != a ? a : (a < b ? a : b);
}
struct maximum {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return larger(a, b);
  }
};

struct minimum {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return smaller(a, b);
  }
};

}  // namespace facula::scalar
