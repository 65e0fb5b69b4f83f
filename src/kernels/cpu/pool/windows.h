// Walks over pooling windows, for files that are built once per instruction set.
#pragma once
#include "kernels/cpu/pool/plan.h"
#include "kernels/cpu/resample/sampling_volume.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA {

// One window of the result: the spans of its three axes.
struct PoolWindow {
  PoolSpan depth, height, width;
};

// Calls visit(offset, index) for each input position of a window, in the order of memory: offset in
// elements, index within the volume.
template <class F>
inline void each_position(const PoolPlan& plan, const PoolWindow& w, const Volume& in, F&& visit) {
  for (int64_t d = w.depth.first; d < w.depth.last; d += plan.step[0])
    for (int64_t h = w.height.first; h < w.height.last; h += plan.step[1])
      for (int64_t x = w.width.first; x < w.width.last; x += plan.step[2])
        visit(d * in.strides[2] + h * in.strides[3] + x * in.strides[4],
              (d * in.sizes[3] + h) * in.sizes[4] + x);
}

// Work of the walk for one row of the result, so that chunks repay a thread's waking.
inline int64_t row_grain(const PoolPlan& plan, const Volume& in, const Volume& out, int64_t run) {
  int64_t window = 1;
  for (int d = 0; d < 3; ++d)
    window *= plan.sliding ? plan.kernel[d]
                           : in.sizes[2 + d] / std::max<int64_t>(out.sizes[2 + d], 1) + 1;
  const int64_t cost = std::max<int64_t>(out.sizes[4] * run * window, 1);
  return std::max<int64_t>((1 << 15) / cost, 1);
}

// Calls row(run, depth, height) for every row of the result, on several threads.
template <class F>
inline void each_row(const ChannelRuns& runs, const Volume& out, int64_t grain, F&& row) {
  const int64_t per_run = out.sizes[2] * out.sizes[3];
  parallel_for(runs.count * per_run, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      row(runs[r / per_run], r % per_run / out.sizes[3], r % out.sizes[3]);
  });
}

// The results of a row for which tap k of a sliding window lies inside of the input.
struct TapRange {
  int64_t begin, end;
};
inline TapRange tap_range(const PoolPlan& plan, int64_t k, int64_t begin, int64_t end,
                          int64_t size) {
  const int64_t shift = k * plan.step[2] - plan.padding[2], stride = plan.stride[2];
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = shift >= size ? 0 : (size - 1 - shift) / stride + 1;
  return {std::max(begin, first), std::min(end, last)};
}

}  // namespace facula::cpu::FACULA_ISA
