#include "kernels/cpu/pool/plan.h"

#include <algorithm>

namespace facula::cpu {
namespace {

Tensor span_memory(const int64_t* output) {
  return empty_tensor(IntVec{(output[0] + output[1] + output[2]) * 3}, DType::Int64);
}

int64_t at(IntSpan list, int64_t d) { return list.size() == 1 ? list[0] : list[d]; }

PoolSpan sliding(int64_t start, int64_t kernel, int64_t dilation, int64_t size, int64_t padding,
                 bool count_padding) {
  PoolSpan s{};
  const int64_t end = start + (kernel - 1) * dilation + 1;
  s.first = start < 0 ? start + (-start + dilation - 1) / dilation * dilation : start;
  s.last = std::max(std::min(end, size), s.first);
  s.extent = count_padding ? std::min(end, size + padding) - start : s.last - s.first;
  return s;
}

}  // namespace

PoolPlan sliding_windows(const int64_t* input, const int64_t* output, int64_t spatial,
                         IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
                         bool count_padding) {
  PoolPlan plan;
  plan.memory = span_memory(output);
  plan.sliding = true;
  PoolSpan* to = static_cast<PoolSpan*>(plan.memory.data());
  for (int64_t d = 0; d < 3; ++d) {
    const int64_t from = d - (3 - spatial);
    plan.kernel[d] = from < 0 ? 1 : at(kernel, from);
    plan.stride[d] = from < 0 ? 1 : at(stride.empty() ? kernel : stride, from);
    plan.padding[d] = from < 0 ? 0 : at(padding, from);
    plan.step[d] = from < 0 ? 1 : at(dilation, from);
    plan.spans[d] = to;
    for (int64_t o = 0; o < output[d]; ++o)
      *to++ = sliding(o * plan.stride[d] - plan.padding[d], plan.kernel[d], plan.step[d], input[d],
                      plan.padding[d], count_padding);
  }
  return plan;
}

PoolPlan adaptive_windows(const int64_t* input, const int64_t* output) {
  PoolPlan plan;
  plan.memory = span_memory(output);
  PoolSpan* to = static_cast<PoolSpan*>(plan.memory.data());
  for (int64_t d = 0; d < 3; ++d) {
    plan.spans[d] = to;
    for (int64_t o = 0; o < output[d]; ++o) {
      // Whole windows and rest apart, so that the products stay small.
      const int64_t whole = input[d] / output[d], rest = input[d] % output[d];
      const int64_t first = o * whole + o * rest / output[d];
      const int64_t last = (o + 1) * whole + ((o + 1) * rest + output[d] - 1) / output[d];
      *to++ = {first, last, last - first};
    }
  }
  return plan;
}

}  // namespace facula::cpu
