#include "kernels/cpu/resample/upsample.h"

#include <cstring>

#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/resample/upsample_gradients.h"
#include "kernels/cpu/resample/upsample_lines.h"

namespace facula::cpu::FACULA_ISA {

using namespace lines;

namespace {

// --- nearest: elements are copied as they are

template <class T>
struct Copies {
  const Axes<float>& axes;
  Volume in, out;
  bool twice;  // each element of a line becomes two

  void line(const OutputLine& l) const {
    const ChannelRuns::Run r = l.run;
    T* to = out.at<T>(r.image, r.channel) + l.depth * out.strides[2] + l.height * out.strides[3];
    const bool dense = r.length == 1 && in.strides[4] == 1 && out.strides[4] == 1;
    const int64_t* row = axes.height.index + l.height;
    if (dense && l.follows && row[0] == row[-1]) {
      std::memcpy(to, to - out.strides[3], static_cast<size_t>(out.sizes[4]) * sizeof(T));
      return;
    }
    const T* from = in.at<const T>(r.image, r.channel) + axes.depth.index[l.depth] * in.strides[2] +
                    row[0] * in.strides[3];
    if (dense) return twice ? copy_twice(from, to) : copy_dense(from, to);
    copy_pixels(from, to, r.length);
  }

  void copy_twice(const T* __restrict from, T* __restrict to) const {
    const int64_t n = in.sizes[4];
    for (int64_t i = 0; i < n; ++i) to[2 * i] = to[2 * i + 1] = from[i];
  }
  void copy_dense(const T* __restrict from, T* __restrict to) const {
    const int64_t* index = axes.width.index;
    const int64_t n = out.sizes[4];
    for (int64_t w = 0; w < n; ++w) to[w] = from[index[w]];
  }
  void copy_pixels(const T* from, T* to, int64_t length) const {
    const int64_t* index = axes.width.index;
    for (int64_t w = 0; w < out.sizes[4]; ++w) {
      const T* pixel = from + index[w] * in.strides[4];
      if (length == 1)
        to[w * out.strides[4]] = *pixel;
      else
        std::memcpy(to + w * out.strides[4], pixel, static_cast<size_t>(length) * sizeof(T));
    }
  }
};

void copy_nearest(const Resampling& how, const Volume& in, const Volume& out, size_t itemsize) {
  const Axes<float> axes(how, in, out);
  const ChannelRuns runs = channel_runs(in, out);
  const bool twice = doubles(axes.width, in.sizes[4], out.sizes[4]);
  visit_size(itemsize, [&]<class T>(Type<T>) {
    const Copies<T> copies{axes, in, out, twice};
    each_chunk(runs, out, out.sizes[4] * runs.length, [&](int64_t begin, int64_t end) {
      walk_lines(runs, out, begin, end, [&](const OutputLine& line) { copies.line(line); });
    });
  });
}

// --- weighted sums

template <class T>
struct WeightedSums {
  using A = accumulate_t<T>;
  const Axes<A>& axes;
  Volume in, out;
  bool of_two = steps_on(axes.width, out.sizes[4]);
  FourRange four = four_range(axes.width, out.sizes[4]);

  // Lines are summed first, then elements of the sum.
  void dense(ChannelRuns::Run r, int64_t d, int64_t h, A* sum) const {
    const int64_t n = in.sizes[4], step = in.strides[4];
    const T* from = in.at<const T>(r.image, r.channel);
    std::fill_n(sum, n, A(0));
    axes.each_line(d, h, in, [&](int64_t offset, A weight) {
      const T* line = from + offset;
      if (step == 1)
        for (int64_t i = 0; i < n; ++i) sum[i] += weight * static_cast<A>(line[i]);
      else
        for (int64_t i = 0; i < n; ++i) sum[i] += weight * static_cast<A>(line[i * step]);
    });
    T* to = out.at<T>(r.image, r.channel) + d * out.strides[2] + h * out.strides[3];
    const int64_t to_step = out.strides[4];
    across(sum, 1, [=](int64_t w, A total) { to[w * to_step] = static_cast<T>(total); });
  }

  // Calls put(w, sum) for the elements of a line across.
  template <class From, class Put>
  [[gnu::always_inline]] void across(const From* line, int64_t step, const Put& put) const {
    const ResampleAxis<A>& x = axes.width;
    const int64_t width = out.sizes[4];
    if (of_two) {
      for (int64_t w = 0; w < width; ++w) {
        const A first = A(0) + x.weight[2 * w] * static_cast<A>(line[x.index[2 * w] * step]);
        put(w, first + x.weight[2 * w + 1] * static_cast<A>(line[x.index[2 * w + 1] * step]));
      }
      return;
    }
    if (four.all_four) return across_four(line, step, put);
    for (int64_t w = 0; w < width; ++w) {
      A total = 0;
      for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t)
        total += x.weight[t] * static_cast<A>(line[x.index[t] * step]);
      put(w, total);
    }
  }

  template <class From, class Put>
  [[gnu::always_inline]] void across_four(const From* line, int64_t step, const Put& put) const {
    const ResampleAxis<A>& x = axes.width;
    const auto each = [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w) {
        A total = 0;
        for (int64_t t = 4 * w; t < 4 * w + 4; ++t)
          total += x.weight[t] * static_cast<A>(line[x.index[t] * step]);
        put(w, total);
      }
    };
    int64_t at = 0;
    if constexpr (std::is_same_v<From, float> && std::is_same_v<A, float>) {
      if (step == 1) {
        each(0, four.begin);
        for (at = four.begin; at + 4 <= four.end; at += 4) {
          const FourFloats sum = sum_of_four(line, x.index + 4 * at, x.weight + 4 * at);
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) put(at + k, sum[k]);
        }
      }
    }
    each(at, out.sizes[4]);
  }

  // Where lines become longer, elements are summed first: each line of the input once, for all
  // lines of the output that it is a part of. A line stands in the slot of its number, modulo as
  // many as are summed at a time.
  class Wide {
   public:
    explicit Wide(const WeightedSums& sums)
        : sums_(sums),
          width_(sums.out.sizes[4]),
          slots_(sums.axes.depth.taps * sums.axes.height.taps),
          memory_(empty_tensor(IntVec{(slots_ + 1) * width_}, dtype_of<A>)) {}

    void line(const OutputLine& l) {
      if (!l.follows) std::fill_n(held_, most_slots, -1);
      const Axes<A>& axes = sums_.axes;
      const Volume &in = sums_.in, &out = sums_.out;
      const T* from = in.at<const T>(l.run.image, l.run.channel);
      const A* lines[most_slots];
      A weights[most_slots];
      int64_t count = 0;
      axes.each_tap(l.depth, l.height, [&](int64_t d, int64_t h, A weight) {
        const int64_t slot = d % axes.depth.taps * axes.height.taps + h % axes.height.taps;
        lines[count] = held(slot, d * in.strides[2] + h * in.strides[3], from);
        weights[count++] = weight;
      });
      T* to = out.at<T>(l.run.image, l.run.channel) + l.depth * out.strides[2] +
              l.height * out.strides[3];
      if (count == 2)
        add_two(lines, weights, to);
      else if (count == 4)
        add_four(lines, weights, to);
      else
        add_all(lines, weights, count, to);
    }

    static constexpr int64_t most_slots = 8;

   private:
    const A* held(int64_t slot, int64_t offset, const T* from) {
      A* line = memory_.template data<A>() + slot * width_;
      if (held_[slot] == offset) return line;
      held_[slot] = offset;
      sums_.across(from + offset, sums_.in.strides[4], [=](int64_t w, A sum) { line[w] = sum; });
      return line;
    }
    void add_two(const A* const* lines, const A* weights, T* __restrict to) const {
      const A* __restrict a = lines[0], * __restrict b = lines[1];
      const A by_a = weights[0], by_b = weights[1];
      const int64_t step = sums_.out.strides[4];
      if (step == 1)
        for (int64_t w = 0; w < width_; ++w)
          to[w] = static_cast<T>((A(0) + by_a * a[w]) + by_b * b[w]);
      else
        for (int64_t w = 0; w < width_; ++w)
          to[w * step] = static_cast<T>((A(0) + by_a * a[w]) + by_b * b[w]);
    }
    void add_four(const A* const* lines, const A* weights, T* __restrict to) const {
      const A* __restrict a = lines[0], * __restrict b = lines[1], * __restrict c = lines[2], * __restrict d = lines[3];
      const A by_a = weights[0], by_b = weights[1], by_c = weights[2], by_d = weights[3];
      const auto sum = [=](int64_t w) __attribute__((always_inline)) {
        return (((A(0) + by_a * a[w]) + by_b * b[w]) + by_c * c[w]) + by_d * d[w];
      };
      const int64_t step = sums_.out.strides[4];
      if (step == 1)
        for (int64_t w = 0; w < width_; ++w) to[w] = static_cast<T>(sum(w));
      else
        for (int64_t w = 0; w < width_; ++w) to[w * step] = static_cast<T>(sum(w));
    }
    void add_all(const A* const* lines, const A* weights, int64_t count, T* to) const {
      A* __restrict sum = memory_.template data<A>() + slots_ * width_;
      std::fill_n(sum, width_, A(0));
      for (int64_t k = 0; k < count; ++k) {
        const A* __restrict line = lines[k];
        const A weight = weights[k];
        for (int64_t w = 0; w < width_; ++w) sum[w] += weight * line[w];
      }
      const int64_t step = sums_.out.strides[4];
      for (int64_t w = 0; w < width_; ++w) to[w * step] = static_cast<T>(sum[w]);
    }

    const WeightedSums& sums_;
    int64_t width_, slots_;
    Tensor memory_;
    int64_t held_[most_slots];
  };

  void side_by_side(ChannelRuns::Run r, int64_t d, int64_t h, A* sum) const {
    const T* from = in.at<const T>(r.image, r.channel);
    T* to = out.at<T>(r.image, r.channel) + d * out.strides[2] + h * out.strides[3];
    const ResampleAxis<A>& x = axes.width;
    if (of_two && axes.depth.count[d] * axes.height.count[h] == 2)
      return blend_line(r.length, d, h, from, to);
    for (int64_t w = 0; w < out.sizes[4]; ++w) {
      std::fill_n(sum, r.length, A(0));
      axes.each_line(d, h, in, [&](int64_t offset, A weight) {
        for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t) {
          const T* pixel = from + offset + x.index[t] * in.strides[4];
          const A by = weight * x.weight[t];
          for (int64_t c = 0; c < r.length; ++c) sum[c] += by * static_cast<A>(pixel[c]);
        }
      });
      for (int64_t c = 0; c < r.length; ++c) to[w * out.strides[4] + c] = static_cast<T>(sum[c]);
    }
  }

  void blend_line(int64_t length, int64_t d, int64_t h, const T* from, T* to) const {
    const ResampleAxis<A>& x = axes.width;
    const T* line[2];
    A by[2];
    int at = 0;
    axes.each_line(d, h, in, [&](int64_t offset, A weight) {
      line[at] = from + offset;
      by[at++] = weight;
    });
    for (int64_t w = 0; w < out.sizes[4]; ++w) {
      const int64_t first = x.index[2 * w] * in.strides[4],
                    second = x.index[2 * w + 1] * in.strides[4];
      const T* pixel[] = {line[0] + first, line[0] + second, line[1] + first, line[1] + second};
      const A low = x.weight[2 * w], high = x.weight[2 * w + 1];
      const A weight[] = {by[0] * low, by[0] * high, by[1] * low, by[1] * high};
      blend(pixel, weight, length, to + w * out.strides[4]);
    }
  }

  void run() const {
    const ChannelRuns runs = channel_runs(in, out);
    const int64_t taps = axes.depth.taps * axes.height.taps;
    const int64_t cost = runs.length > 1 ? out.sizes[4] * taps * axes.width.taps * runs.length
                                         : in.sizes[4] * taps + out.sizes[4] * axes.width.taps;
    const bool wide =
        runs.length == 1 && out.sizes[4] >= in.sizes[4] && taps > 1 && taps <= Wide::most_slots;
    each_chunk(runs, out, cost, [&](int64_t begin, int64_t end) {
      if (wide) {
        Wide lines(*this);
        return walk_lines(runs, out, begin, end, [&](const OutputLine& l) { lines.line(l); });
      }
      const Tensor scratch = empty_tensor(IntVec{std::max(in.sizes[4], runs.length)}, dtype_of<A>);
      A* sum = scratch.data<A>();
      walk_lines(runs, out, begin, end, [&](const OutputLine& l) {
        if (runs.length > 1)
          side_by_side(l.run, l.depth, l.height, sum);
        else
          dense(l.run, l.depth, l.height, sum);
      });
    });
  }
};

// --- bytes: across first, then down, each rounded to a byte

uint8_t byte_of(int32_t sum, int precision) {
  return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255));
}

struct ByteImage {
  const ByteAxis &down, &across;
  Volume in, out;

  void plane(int64_t n, int64_t c, uint8_t* between) const {
    const uint8_t* from = in.at<const uint8_t>(n, c);
    const ResampleAxis<double>& x = across.axis;
    for (int64_t h = 0; h < in.sizes[3]; ++h)
      for (int64_t w = 0; w < out.sizes[4]; ++w) {
        int32_t sum = half(across.precision);
        for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t)
          sum += across.weight[t] * from[h * in.strides[3] + x.index[t] * in.strides[4]];
        between[h * out.sizes[4] + w] = byte_of(sum, across.precision);
      }
    const ResampleAxis<double>& y = down.axis;
    for (int64_t h = 0; h < out.sizes[3]; ++h)
      for (int64_t w = 0; w < out.sizes[4]; ++w) {
        int32_t sum = half(down.precision);
        for (int64_t t = h * y.taps; t < h * y.taps + y.count[h]; ++t)
          sum += down.weight[t] * between[y.index[t] * out.sizes[4] + w];
        out.at<uint8_t>(n, c)[h * out.strides[3] + w * out.strides[4]] =
            byte_of(sum, down.precision);
      }
  }
  static int32_t half(int precision) { return precision > 0 ? 1 << (precision - 1) : 0; }

  void run() const {
    parallel_for(in.sizes[0] * in.sizes[1], 1, [&](int64_t begin, int64_t end) {
      const Tensor between = empty_tensor(IntVec{in.sizes[3], out.sizes[4]}, DType::UInt8);
      for (int64_t p = begin; p < end; ++p)
        plane(p / in.sizes[1], p % in.sizes[1], between.data<uint8_t>());
    });
  }
};

void resample_bytes(const Resampling& how, const Volume& in, const Volume& out) {
  const ByteAxis down = byte_axis(how, 1, in.sizes[3], out.sizes[3]),
                 across = byte_axis(how, 2, in.sizes[4], out.sizes[4]);
  ByteImage{down, across, in, out}.run();
}

// --- which types each filter takes, and the name that errors give it

const char* kernel_name(Filter f) {
  switch (f) {
    case Filter::Nearest:
    case Filter::NearestExact:
      return "compute_indices_weights_nearest";
    case Filter::Linear:
      return "compute_indices_weights_linear";
    case Filter::Cubic:
      return "compute_indices_weights_cubic";
    default:
      return "compute_index_ranges_weights";
  }
}
bool is_nearest(Filter f) { return f == Filter::Nearest || f == Filter::NearestExact; }

template <class F>
void visit(const Resampling& how, DType d, F&& f) {
  const bool halves = how.filter != Filter::AaLinear && how.filter != Filter::AaCubic;
  const bool known =
      visit_types<float, double>(d, f) || (halves && visit_types<Half, BFloat16>(d, f));
  if (!known) not_implemented_for(kernel_name(how.filter), d);
}

}  // namespace

void resample(const Resampling& how, const Tensor& self, const Tensor& out) {
  const Volume in = volume_of(self, how.spatial), to = volume_of(out, how.spatial);
  const bool bytes = self.dtype() == DType::UInt8;
  if (is_nearest(how.filter) && (bytes || is_floating(self.dtype())))
    return copy_nearest(how, in, to, self.itemsize());
  if (bytes && how.spatial == 2) return resample_bytes(how, in, to);
  visit(how, self.dtype(), [&]<class T>(Type<T>) {
    const Axes<accumulate_t<T>> axes(how, in, to);
    WeightedSums<T>{axes, in, to}.run();
  });
}

void resample_backward(const Resampling& how, const Tensor& grad, const Tensor& out) {
  const DType wide = compute_of(out.dtype());
  const Tensor sums =
      wide == out.dtype() ? out : empty_strided_tensor(out.sizes(), out.strides(), wide);
  fill(sums, 0);
  const Volume from = volume_of(grad, how.spatial), to = volume_of(sums, how.spatial);
  visit(how, grad.dtype(), [&]<class T>(Type<T>) {
    const Axes<accumulate_t<T>> axes(how, to, from);
    SpreadGradients<T>{axes, from, to}.run();
  });
  if (!sums.is_same(out)) copy(out, sums);
}

}  // namespace facula::cpu::FACULA_ISA
