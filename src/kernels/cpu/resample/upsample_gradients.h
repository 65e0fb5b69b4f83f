// The gradient of a resampled image: the transpose of its weighted sums.
#pragma once
#include <optional>
#include <vector>

#include "kernels/cpu/resample/upsample_lines.h"

namespace facula::cpu::FACULA_ISA::lines {

// to = the sum of weight * line, four lines at a time.
template <bool first, int m, class T, class A>
[[gnu::always_inline]] inline void add_some(const T* const* line, const A* weight, int64_t n,
                                            A* __restrict to) {
  const T* from[m];
  A by[m];
  for (int j = 0; j < m; ++j) from[j] = line[j], by[j] = weight[j];
  for (int64_t i = 0; i < n; ++i) {
    A sum = first ? A(0) : to[i];
#pragma GCC unroll 4
    for (int j = 0; j < m; ++j) sum += by[j] * static_cast<A>(from[j][i]);
    to[i] = sum;
  }
}
template <bool first, class T, class A>
void add_up_to_four(const T* const* line, const A* weight, int64_t count, int64_t n, A* to) {
  switch (count) {
    case 1:
      return add_some<first, 1>(line, weight, n, to);
    case 2:
      return add_some<first, 2>(line, weight, n, to);
    case 3:
      return add_some<first, 3>(line, weight, n, to);
    default:
      return add_some<first, 4>(line, weight, n, to);
  }
}

// What an element of the input is a part of, and with which weights: an axis the other way around.
template <class A>
class Parts {
 public:
  Parts(const ResampleAxis<A>& x, int64_t output, int64_t input)
      : start_(static_cast<size_t>(input) + 1) {
    each(x, output, [&](int64_t from, int64_t, A) { ++start_[static_cast<size_t>(from) + 1]; });
    for (size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
    of_.resize(static_cast<size_t>(start_.back()));
    weight_.resize(of_.size());
    std::vector<int64_t> next(start_);
    each(x, output, [&](int64_t from, int64_t to, A weight) {
      const auto k = static_cast<size_t>(next[static_cast<size_t>(from)]++);
      of_[k] = to;
      weight_[k] = weight;
    });
  }

  // to[0..n) = the sum of an element's parts, each of which begins at line(number).
  template <class Line>
  void sum(int64_t element, int64_t n, A* to, const Line& line) const {
    const auto at = static_cast<size_t>(element);
    for (int64_t k = start_[at], end = start_[at + 1]; k < end; k += 4) {
      const int64_t count = std::min<int64_t>(4, end - k);
      decltype(line(0)) lines[4];
      for (int64_t j = 0; j < count; ++j) lines[j] = line(of_[static_cast<size_t>(k + j)]);
      const A* weights = weight_.data() + k;
      if (k == start_[at])
        add_up_to_four<true>(lines, weights, count, n, to);
      else
        add_up_to_four<false>(lines, weights, count, n, to);
    }
    if (start_[at] == start_[at + 1]) std::fill_n(to, n, A(0));
  }

 private:
  template <class F>
  static void each(const ResampleAxis<A>& x, int64_t output, F&& visit) {
    for (int64_t w = 0; w < output; ++w)
      for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t)
        visit(x.index[t], w, x.weight[t]);
  }
  std::vector<int64_t> start_, of_;
  std::vector<A> weight_;
};

// The transpose of the sums; `out` holds the compute type.
template <class T>
struct SpreadGradients {
  using A = accumulate_t<T>;
  const Axes<A>& axes;
  Volume grad, out;
  // Whether each element of a row gets the gradients of two neighbours as they are.
  bool pairs = doubles(axes.width, out.sizes[4], grad.sizes[4]);
  // The same of rows as well, so that it gets those of four.
  bool squares = pairs && axes.depth.taps == 1 && grad.sizes[2] == 1 &&
                 doubles(axes.height, out.sizes[3], grad.sizes[3]);
  bool of_two = steps_on(axes.width, grad.sizes[4]);

  // Gradients of one image's lines. Those that a line of the input gets are summed first, in the
  // slot of its number modulo as many as get some at a time; elements are when the line is full.
  class Slots {
   public:
    explicit Slots(const SpreadGradients& to)
        : to_(to),
          width_(to.grad.sizes[4]),
          count_(to.axes.depth.taps * to.axes.height.taps),
          memory_(empty_tensor(IntVec{count_ * width_ + to.out.sizes[4]}, dtype_of<A>)),
          held_(static_cast<size_t>(count_), -1) {}

    void image(ChannelRuns::Run r) {
      for (int64_t d = 0; d < to_.grad.sizes[2]; ++d)
        for (int64_t h = 0; h < to_.grad.sizes[3]; ++h) add(r, d, h);
      for (size_t slot = 0; slot < held_.size(); ++slot) empty(r, slot);
    }

   private:
    void add(ChannelRuns::Run r, int64_t d, int64_t h) {
      const Volume& grad = to_.grad;
      const T* from =
          grad.at<const T>(r.image, r.channel) + d * grad.strides[2] + h * grad.strides[3];
      to_.axes.each_tap(d, h, [&](int64_t depth, int64_t height, A weight) {
        const int64_t across = to_.axes.height.taps;
        const auto slot =
            static_cast<size_t>(depth % to_.axes.depth.taps * across + height % across);
        const int64_t offset = depth * to_.out.strides[2] + height * to_.out.strides[3];
        const bool more = held_[slot] == offset;
        if (!more) empty(r, slot);
        held_[slot] = offset;
        add_line(from, weight, line(slot), more);
      });
    }
    void add_line(const T* __restrict from, A weight, A* __restrict sum, bool more) const {
      const int64_t n = width_, step = to_.grad.strides[4];
      if (!more) std::fill_n(sum, n, A(0));
      if (step == 1)
        for (int64_t i = 0; i < n; ++i) sum[i] += weight * static_cast<A>(from[i]);
      else
        for (int64_t i = 0; i < n; ++i) sum[i] += weight * static_cast<A>(from[i * step]);
    }
    void empty(ChannelRuns::Run r, size_t slot) {
      if (held_[slot] < 0) return;
      A* sum = memory_.template data<A>() + count_ * width_;
      to_.sum_across(line(slot), sum);
      A* to = to_.out.template at<A>(r.image, r.channel) + held_[slot];
      const int64_t n = to_.out.sizes[4], step = to_.out.strides[4];
      for (int64_t i = 0; i < n; ++i) to[i * step] += sum[i];
      held_[slot] = -1;
    }
    A* line(size_t slot) {
      return memory_.template data<A>() + static_cast<int64_t>(slot) * width_;
    }

    const SpreadGradients& to_;
    int64_t width_, count_;
    Tensor memory_;
    std::vector<int64_t> held_;  // offsets of lines, -1 for none
  };

  void sum_across(const A* from, A* sum) const {
    if (of_two) return sum_pairs_of_taps(from, sum, out.sizes[4]);
    sum_taps(from, sum, out.sizes[4]);
  }

  // What an element gets from second taps and then from first ones is summed in registers.
  void sum_pairs_of_taps(const A* from, A* sum, int64_t n) const {
    const ResampleAxis<A>& x = axes.width;
    std::fill_n(sum, n, A(0));
    int64_t at = 0;
    A low = 0, high = 0;
    for (int64_t w = 0; w < grad.sizes[4]; ++w) {
      const int64_t first = x.index[2 * w];
      if (first != at) {
        sum[at] = low;
        low = first == at + 1 ? high : A(0);
        if (first != at + 1 && at + 1 < n) sum[at + 1] = high;
        high = 0;
        at = first;
      }
      low += x.weight[2 * w] * from[w];
      (x.index[2 * w + 1] == first ? low : high) += x.weight[2 * w + 1] * from[w];
    }
    sum[at] = low;
    if (at + 1 < n) sum[at + 1] = high;
  }
  void sum_taps(const A* from, A* sum, int64_t n) const {
    const ResampleAxis<A>& x = axes.width;
    std::fill_n(sum, n, A(0));
    for (int64_t w = 0; w < grad.sizes[4]; ++w)
      for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t)
        sum[x.index[t]] += x.weight[t] * from[w];
  }
  // Where each gradient has one tap, those of an element are neighbours: their sum needs no slots.
  void image_of_one_tap(ChannelRuns::Run r, A* sum) const {
    const T* from = grad.at<const T>(r.image, r.channel);
    A* to = out.at<A>(r.image, r.channel);
    const int64_t n = out.sizes[4], step = out.strides[4];
    for (int64_t d = 0; d < grad.sizes[2]; ++d)
      for (int64_t h = 0; h < grad.sizes[3]; ++h) {
        sum_neighbours(from + d * grad.strides[2] + h * grad.strides[3], sum, n);
        axes.each_line(d, h, out, [&](int64_t offset, A weight) {
          for (int64_t i = 0; i < n; ++i) to[offset + i * step] += weight * sum[i];
        });
      }
  }
  void sum_neighbours(const T* from, A* sum, int64_t n) const {
    const ResampleAxis<A>& x = axes.width;
    const int64_t width = grad.sizes[4], step = grad.strides[4];
    if (pairs && step == 1) {
      for (int64_t i = 0; i < n; ++i)
        sum[i] = static_cast<A>(from[2 * i]) + static_cast<A>(from[2 * i + 1]);
      return;
    }
    for (int64_t i = 0, w = 0; i < n; ++i) {
      A total = 0;
      for (; w < width && x.index[w] == i; ++w)
        total += x.weight[w] * static_cast<A>(from[w * step]);
      sum[i] = total;
    }
  }

  // Squares of two by two.
  void image_of_squares(ChannelRuns::Run r) const {
    const int64_t down = grad.strides[3], across = grad.strides[4];
    for (int64_t h = 0; h < out.sizes[3]; ++h) {
      const T* from = grad.at<const T>(r.image, r.channel) + 2 * h * down;
      A* to = out.at<A>(r.image, r.channel) + h * out.strides[3];
      if (r.length > 1)
        squares_of_pixels(from, to, r.length);
      else if (across == 1 && out.strides[4] == 1)
        squares_of_rows(from, from + down, to);
      else
        for (int64_t w = 0; w < out.sizes[4]; ++w, from += 2 * across)
          squares_of_rows_at(from, to + w * out.strides[4]);
    }
  }
  void squares_of_rows_at(const T* from, A* to) const {
    const int64_t down = grad.strides[3], across = grad.strides[4];
    *to = (static_cast<A>(from[0]) + static_cast<A>(from[across])) +
          (static_cast<A>(from[down]) + static_cast<A>(from[down + across]));
  }
  void squares_of_rows(const T* __restrict a, const T* __restrict b, A* __restrict to) const {
    for (int64_t w = 0; w < out.sizes[4]; ++w)
      to[w] = (static_cast<A>(a[2 * w]) + static_cast<A>(a[2 * w + 1])) +
              (static_cast<A>(b[2 * w]) + static_cast<A>(b[2 * w + 1]));
  }
  void squares_of_pixels(const T* from, A* to, int64_t length) const {
    const int64_t down = grad.strides[3], across = grad.strides[4];
    constexpr A ones[] = {1, 1, 1, 1};
    for (int64_t w = 0; w < out.sizes[4]; ++w, from += 2 * across) {
      const T* pixel[] = {from, from + across, from + down, from + down + across};
      blend(pixel, ones, length, to + w * out.strides[4]);
    }
  }

  void side_by_side(ChannelRuns::Run r, int64_t d, int64_t h) const {
    const T* from =
        grad.at<const T>(r.image, r.channel) + d * grad.strides[2] + h * grad.strides[3];
    A* to = out.at<A>(r.image, r.channel);
    const ResampleAxis<A>& x = axes.width;
    axes.each_line(d, h, out, [&](int64_t offset, A weight) {
      for (int64_t w = 0; w < grad.sizes[4]; ++w) {
        const T* g = from + w * grad.strides[4];
        for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t)
          add_pixel(g, weight * x.weight[t], r.length, to + offset + x.index[t] * out.strides[4]);
      }
    });
  }
  static void add_pixel(const T* __restrict g, A weight, int64_t n, A* __restrict pixel) {
    for (int64_t c = 0; c < n; ++c) pixel[c] += weight * static_cast<A>(g[c]);
  }

  // Channels side by side in a plane: lines are summed down, and pixels of the sums across.
  void plane_of_runs(ChannelRuns::Run r, const Parts<A>& rows, const Parts<A>& columns,
                     A* sums) const {
    const T* from = grad.at<const T>(r.image, r.channel);
    const int64_t n = r.length;
    for (int64_t h = 0; h < out.sizes[3]; ++h) {
      for (int64_t w = 0; w < grad.sizes[4]; ++w)
        rows.sum(h, n, sums + w * n,
                 [&](int64_t row) { return from + row * grad.strides[3] + w * grad.strides[4]; });
      A* to = out.at<A>(r.image, r.channel) + h * out.strides[3];
      for (int64_t w = 0; w < out.sizes[4]; ++w)
        columns.sum(w, n, to + w * out.strides[4],
                    [&](int64_t column) { return static_cast<const A*>(sums + column * n); });
    }
  }

  void image_of_runs(ChannelRuns::Run r) const {
    for (int64_t d = 0; d < grad.sizes[2]; ++d)
      for (int64_t h = 0; h < grad.sizes[3]; ++h) side_by_side(r, d, h);
  }

  void run() const {
    const ChannelRuns runs = channel_runs(grad, out);
    const bool planes = runs.length > 1 && axes.depth.taps == 1 && grad.sizes[2] == 1;
    std::optional<Parts<A>> rows, columns;
    if (planes && !squares) {
      rows.emplace(axes.height, grad.sizes[3], out.sizes[3]);
      columns.emplace(axes.width, grad.sizes[4], out.sizes[4]);
    }
    const int64_t cost =
        grad.sizes[2] * grad.sizes[3] * (grad.sizes[4] + out.sizes[4]) * runs.length;
    parallel_for(runs.count, grain_of(cost), [&](int64_t begin, int64_t end) {
      const auto each = [&](auto&& image) {
        for (int64_t i = begin; i < end; ++i) image(runs[i]);
      };
      if (squares) return each([&](auto r) { image_of_squares(r); });
      if (planes) {
        const Tensor sums = empty_tensor(IntVec{grad.sizes[4] * runs.length}, dtype_of<A>);
        return each([&](auto r) { plane_of_runs(r, *rows, *columns, sums.data<A>()); });
      }
      if (runs.length > 1) return each([&](auto r) { image_of_runs(r); });
      if (axes.width.taps == 1) {
        const Tensor sum = empty_tensor(IntVec{out.sizes[4]}, dtype_of<A>);
        return each([&](auto r) { image_of_one_tap(r, sum.data<A>()); });
      }
      Slots slots(*this);
      each([&](auto r) { slots.image(r); });
    });
  }
};

}  // namespace facula::cpu::FACULA_ISA::lines
