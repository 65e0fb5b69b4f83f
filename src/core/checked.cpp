#include "core/checked.h"

#include <algorithm>

namespace facula {

void throw_overflow(const char* what, int64_t a, char sign, int64_t b) {
  throw_error(ErrorKind::Runtime, concat(what, " overflowed: ", a, " ", sign, " ", b));
}

IntVec dense_strides(IntSpan sizes, IntSpan fastest_first) {
  IntVec strides(sizes.size());
  int64_t step = 1, below = 1;
  for (int64_t d : fastest_first) {
    // The product with the size of the slowest dimension is not used as a stride, so it may
    // overflow.
    step = checked_mul(step, below, "Stride calculation");
    strides[static_cast<size_t>(d)] = step;
    below = std::max<int64_t>(sizes[static_cast<size_t>(d)], 1);
  }
  return strides;
}

}  // namespace facula
