// The input elements that a grid point reads, axis by axis.
#pragma once
#include <cmath>

#include "kernels/cpu/resample/sampling.h"
#include "kernels/cpu/resample/sampling_volume.h"

namespace facula::cpu {

// Elements along one axis: where, with which weight, and how the weight changes with the grid's
// coordinate. An index below zero lies outside, where the input counts as zero.
template <class A>
struct AxisTaps {
  int count = 1;
  int64_t index[4] = {0, 0, 0, 0};
  A weight[4] = {1, 0, 0, 0};
  A slope[4] = {0, 0, 0, 0};
};

// A position in elements and its derivative by the coordinate it came from.
template <class A>
struct GridPosition {
  A x, slope;
};

template <class A>
GridPosition<A> unnormalized(A coordinate, int64_t size, bool align) {
  const A n = static_cast<A>(size);
  if (align) return {(coordinate + 1) / 2 * (n - 1), (n - 1) / 2};
  return {((coordinate + 1) * n - 1) / 2, n / 2};
}

template <class A>
GridPosition<A> clipped(GridPosition<A> p, int64_t size) {
  const A last = static_cast<A>(size - 1);
  if (!(p.x > 0)) return {A(0), A(0)};
  if (p.x >= last) return {last, A(0)};
  return p;
}

// Bounces between the centres of the first and last elements, or between their outer edges.
template <class A>
GridPosition<A> reflected(GridPosition<A> p, int64_t size, bool align) {
  const A low = align ? A(0) : A(-0.5), span = static_cast<A>(align ? size - 1 : size);
  if (span == 0) return {A(0), A(0)};
  const A sign = p.x < low ? A(-1) : A(1), way = std::abs(p.x - low);
  const A rest = std::fmod(way, span), bounces = std::floor(way / span);
  if (std::fmod(bounces, A(2)) == 0) return {rest + low, p.slope * sign};
  return {span - rest + low, -p.slope * sign};
}

template <class A>
GridPosition<A> padded(GridPosition<A> p, int64_t size, Padding padding, bool align) {
  if (padding == Padding::Zeros) return p;
  return clipped(padding == Padding::Reflection ? reflected(p, size, align) : p, size);
}

// Positions too far away for an integer, and NaN, are outside.
template <class A>
int64_t element(A x, int64_t size) {
  return x >= 0 && x < static_cast<A>(size) ? static_cast<int64_t>(x) : -1;
}

template <class A>
AxisTaps<A> linear_taps(GridPosition<A> p, int64_t size) {
  const A first = std::floor(p.x);
  return {2,
          {element(first, size), element(first + 1, size)},
          {first + 1 - p.x, p.x - first},
          {-p.slope, p.slope}};
}

template <class A>
AxisTaps<A> cubic_taps(A coordinate, int64_t size, Padding padding, bool align) {
  const GridPosition<A> p = unnormalized(coordinate, size, align);
  const A first = std::floor(p.x), t = p.x - first, a = A(-0.75);
  auto inner = [&](A x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto outer = [&](A x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  auto inner_slope = [&](A x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  auto outer_slope = [&](A x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  AxisTaps<A> taps{4,
                   {},
                   {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)},
                   {outer_slope(t + 1), inner_slope(t), -inner_slope(1 - t), -outer_slope(2 - t)}};
  for (int i = 0; i < 4; ++i) {
    taps.slope[i] *= p.slope;
    taps.index[i] = element(
        padded(GridPosition<A>{first + static_cast<A>(i - 1), A(1)}, size, padding, align).x, size);
  }
  return taps;
}

template <class A>
AxisTaps<A> axis_taps(A coordinate, int64_t size, Interpolation how, Padding padding, bool align) {
  if (how == Interpolation::Cubic) return cubic_taps(coordinate, size, padding, align);
  const GridPosition<A> p = padded(unnormalized(coordinate, size, align), size, padding, align);
  if (how == Interpolation::Linear) return linear_taps(p, size);
  AxisTaps<A> one;
  one.index[0] = element(std::nearbyint(p.x), size);
  return one;
}

// The taps of a grid point: depth, height, width.
template <class A>
struct PointTaps {
  AxisTaps<A> axis[3];

  // Calls visit(offset, weight, slopes) for every element inside; slopes are by depth, height,
  // width.
  template <class F>
  void each(const Volume& in, F&& visit) const {
    const AxisTaps<A>&z = axis[0], &y = axis[1], &x = axis[2];
    for (int i = 0; i < z.count; ++i)
      for (int j = 0; j < y.count; ++j)
        for (int k = 0; k < x.count; ++k) {
          if (z.index[i] < 0 || y.index[j] < 0 || x.index[k] < 0) continue;
          const A wz = z.weight[i], wy = y.weight[j], wx = x.weight[k];
          const A slopes[3] = {z.slope[i] * wy * wx, wz * y.slope[j] * wx, wz * wy * x.slope[k]};
          visit(
              z.index[i] * in.strides[2] + y.index[j] * in.strides[3] + x.index[k] * in.strides[4],
              wz * wy * wx, slopes);
        }
  }
};

}  // namespace facula::cpu
