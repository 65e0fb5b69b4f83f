// A contiguous tensor seen along one dimension: outer x length x inner.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

struct Lines {
  int64_t outer = 1, length = 1, inner = 1;
  Lines(IntSpan sizes, int64_t dim) {
    const int64_t n = static_cast<int64_t>(sizes.size());
    if (n == 0) return;
    for (int64_t d = 0; d < dim; ++d) outer *= sizes[d];
    length = sizes[dim];
    for (int64_t d = dim + 1; d < n; ++d) inner *= sizes[d];
  }
  int64_t count() const { return outer * inner; }
};

}  // namespace facula::cpu
