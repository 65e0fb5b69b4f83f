// Where pooling windows lie: for every position of the result along an axis, the input positions
// that its window covers.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Positions first, first + step, ... before last; `extent` is the length that an average divides
// by.
struct PoolSpan {
  int64_t first, last, extent;
};

struct PoolPlan {
  const PoolSpan* spans[3];  // depth, height, width
  int64_t step[3] = {1, 1, 1};
  bool sliding = false;  // windows of one size at one distance: the lists below hold
  int64_t kernel[3], stride[3], padding[3];
  Tensor memory;
};

// Windows that slide over the input; lists may hold one number for all dimensions, and an empty
// stride means the kernel's size. With `count_padding` the extents include padding.
PoolPlan sliding_windows(const int64_t* input, const int64_t* output, int64_t spatial,
                         IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
                         bool count_padding);
// Windows that split the input as evenly as possible, overlapping where it cannot be split.
PoolPlan adaptive_windows(const int64_t* input, const int64_t* output);

}  // namespace facula::cpu
