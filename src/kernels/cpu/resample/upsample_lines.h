// Lines of resampled images: which are made of which, and the order in which threads make them.
#pragma once
#include <cstring>

#include "kernels/cpu/resample/sampling_volume.h"
#include "kernels/cpu/resample/upsample_plan.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA::lines {

template <class A>
struct Axes {
  ResampleAxis<A> depth, height, width;
  Axes(const Resampling& how, const Volume& in, const Volume& out)
      : depth(resample_axis<A>(how, 0, in.sizes[2], out.sizes[2])),
        height(resample_axis<A>(how, 1, in.sizes[3], out.sizes[3])),
        width(resample_axis<A>(how, 2, in.sizes[4], out.sizes[4])) {}

  // Calls visit(depth, height, weight) for the input lines that a line of the output is made of.
  template <class F>
  void each_tap(int64_t d, int64_t h, F&& visit) const {
    for (int64_t i = 0; i < depth.count[d]; ++i)
      for (int64_t j = 0; j < height.count[h]; ++j) {
        const int64_t di = d * depth.taps + i, hj = h * height.taps + j;
        visit(depth.index[di], height.index[hj], depth.weight[di] * height.weight[hj]);
      }
  }
  // The same by the lines' offsets.
  template <class F>
  void each_line(int64_t d, int64_t h, const Volume& in, F&& visit) const {
    each_tap(d, h, [&](int64_t depth_at, int64_t height_at, A weight) {
      visit(depth_at * in.strides[2] + height_at * in.strides[3], weight);
    });
  }
};

inline int64_t grain_of(int64_t cost) {
  return std::max<int64_t>((1 << 14) / std::max<int64_t>(cost, 1), 1);
}

// A line of the output; `follows` where the line above it was the last one that this thread made.
struct OutputLine {
  ChannelRuns::Run run;
  int64_t depth, height;
  bool follows;
};

// Calls body(line) for lines [begin, end) of the output in order.
template <class F>
void walk_lines(const ChannelRuns& runs, const Volume& out, int64_t begin, int64_t end, F&& body) {
  const int64_t rows = out.sizes[3], per_run = out.sizes[2] * rows;
  OutputLine line{runs[begin / per_run], begin % per_run / rows, begin % rows, false};
  for (int64_t r = begin; r < end; ++r) {
    body(line);
    line.follows = ++line.height < rows;
    if (line.follows) continue;
    line.height = 0;
    if (++line.depth < out.sizes[2]) continue;
    line.depth = 0;
    line.run = runs[(r + 1) / per_run];
  }
}

// Calls body(begin, end) for chunks of lines of the output, each of which costs as much.
template <class F>
void each_chunk(const ChannelRuns& runs, const Volume& out, int64_t cost, F&& body) {
  parallel_for(runs.count * out.sizes[2] * out.sizes[3], grain_of(cost), body);
}

// Whether each element of an axis of n stands for two neighbours of one of `width`.
template <class A>
bool doubles(const ResampleAxis<A>& x, int64_t n, int64_t width) {
  bool yes = x.taps == 1 && width == 2 * n;
  for (int64_t w = 0; yes && w < width; ++w)
    yes = x.count[w] == 1 && x.index[w] == w / 2 && x.weight[w] == A(1);
  return yes;
}

// Whether the elements of an axis are made of two neighbours each, which only move on.
template <class A>
bool steps_on(const ResampleAxis<A>& x, int64_t width) {
  bool yes = x.taps == 2;
  for (int64_t w = 0; yes && w < width; ++w) {
    const int64_t first = x.index[2 * w], second = x.index[2 * w + 1];
    yes = x.count[w] == 2 && (second == first || second == first + 1) &&
          (w == 0 || x.index[2 * w - 2] <= first);
  }
  return yes;
}

// The results of an axis that are made of four elements side by side: [begin, end), which may be
// empty. Those before and behind them repeat the element at the edge.
struct FourRange {
  bool all_four;
  int64_t begin, end;
};
template <class A>
FourRange four_range(const ResampleAxis<A>& x, int64_t width) {
  const auto has_four = [&](int64_t w) { return x.count[w] == 4; };
  const auto side_by_side = [&](int64_t w) {
    const int64_t* at = x.index + 4 * w;
    return at[1] == at[0] + 1 && at[2] == at[0] + 2 && at[3] == at[0] + 3;
  };
  FourRange r{x.taps == 4, 0, 0};
  for (int64_t w = 0; r.all_four && w < width; ++w) r.all_four = has_four(w);
  if (!r.all_four) return r;
  while (r.begin < width && !side_by_side(r.begin)) ++r.begin;
  for (r.end = r.begin; r.end < width && side_by_side(r.end);) ++r.end;
  return r;
}

typedef float FourFloats __attribute__((vector_size(16)));
// Four results of four elements each, whose sums are in the order of elements.
[[gnu::always_inline]] inline FourFloats sum_of_four(const float* line, const int64_t* index,
                                                     const float* weight) {
  FourFloats p[4];
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    FourFloats elements, by;
    __builtin_memcpy(&elements, line + index[4 * k], sizeof elements);
    __builtin_memcpy(&by, weight + 4 * k, sizeof by);
    p[k] = by * elements;
  }
  const FourFloats a = __builtin_shufflevector(p[0], p[1], 0, 4, 1, 5),
                   b = __builtin_shufflevector(p[0], p[1], 2, 6, 3, 7),
                   c = __builtin_shufflevector(p[2], p[3], 0, 4, 1, 5),
                   d = __builtin_shufflevector(p[2], p[3], 2, 6, 3, 7);
  FourFloats sum = 0.0f + __builtin_shufflevector(a, c, 0, 1, 4, 5);
  sum += __builtin_shufflevector(a, c, 2, 3, 6, 7);
  sum += __builtin_shufflevector(b, d, 0, 1, 4, 5);
  return sum + __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// One pixel of two by two, in one pass over its channels.
template <class T, class A, class To>
void blend(const T* const* pixel, const A* weight, int64_t n, To* __restrict to) {
  const T *a = pixel[0], *b = pixel[1], *c = pixel[2], *d = pixel[3];
  const A by_a = weight[0], by_b = weight[1], by_c = weight[2], by_d = weight[3];
  for (int64_t i = 0; i < n; ++i) {
    A sum = A(0) + by_a * static_cast<A>(a[i]);
    sum += by_b * static_cast<A>(b[i]);
    sum += by_c * static_cast<A>(c[i]);
    to[i] = static_cast<To>(sum + by_d * static_cast<A>(d[i]));
  }
}

}  // namespace facula::cpu::FACULA_ISA::lines
