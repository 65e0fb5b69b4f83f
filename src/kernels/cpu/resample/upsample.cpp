#include "kernels/cpu/resample/upsample.h"

#include <cstring>

#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/resample/sampling_volume.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class A>
struct Axes {
  ResampleAxis<A> depth, height, width;
  Axes(const Resampling& how, const Volume& in, const Volume& out)
      : depth(resample_axis<A>(how, 0, in.sizes[2], out.sizes[2])),
        height(resample_axis<A>(how, 1, in.sizes[3], out.sizes[3])),
        width(resample_axis<A>(how, 2, in.sizes[4], out.sizes[4])) {}

  // Calls visit(offset, weight) for the input lines that a line of the output is made of.
  template <class F>
  void each_line(int64_t d, int64_t h, const Volume& in, F&& visit) const {
    for (int64_t i = 0; i < depth.count[d]; ++i)
      for (int64_t j = 0; j < height.count[h]; ++j) {
        const int64_t di = d * depth.taps + i, hj = h * height.taps + j;
        visit(depth.index[di] * in.strides[2] + height.index[hj] * in.strides[3],
              depth.weight[di] * height.weight[hj]);
      }
  }
};

int64_t grain_of(int64_t cost) {
  return std::max<int64_t>((1 << 14) / std::max<int64_t>(cost, 1), 1);
}

// Chunks of lines of the output: body(run, depth, height, scratch of `width` numbers).
template <class A, class F>
void each_line(const ChannelRuns& runs, const Volume& out, int64_t cost, int64_t width, F&& body) {
  const int64_t per_run = out.sizes[2] * out.sizes[3];
  parallel_for(runs.count * per_run, grain_of(cost), [&](int64_t begin, int64_t end) {
    const Tensor scratch = empty_tensor(IntVec{width}, dtype_of<A>);
    for (int64_t r = begin; r < end; ++r)
      body(runs[r / per_run], r % per_run / out.sizes[3], r % out.sizes[3], scratch.data<A>());
  });
}

// --- nearest: elements are copied as they are

template <class T>
struct Copies {
  const Axes<float>& axes;
  Volume in, out;

  void line(ChannelRuns::Run r, int64_t d, int64_t h) const {
    const T* from = in.at<const T>(r.image, r.channel) + axes.depth.index[d] * in.strides[2] +
                    axes.height.index[h] * in.strides[3];
    T* to = out.at<T>(r.image, r.channel) + d * out.strides[2] + h * out.strides[3];
    const int64_t* index = axes.width.index;
    for (int64_t w = 0; w < out.sizes[4]; ++w) {
      const T* pixel = from + index[w] * in.strides[4];
      if (r.length == 1)
        to[w * out.strides[4]] = *pixel;
      else
        std::memcpy(to + w * out.strides[4], pixel, static_cast<size_t>(r.length) * sizeof(T));
    }
  }
};

void copy_nearest(const Resampling& how, const Volume& in, const Volume& out, size_t itemsize) {
  const Axes<float> axes(how, in, out);
  const ChannelRuns runs = channel_runs(in, out);
  visit_size(itemsize, [&]<class T>(Type<T>) {
    const Copies<T> copies{axes, in, out};
    each_line<float>(
        runs, out, out.sizes[4] * runs.length, 0,
        [&](ChannelRuns::Run r, int64_t d, int64_t h, float*) { copies.line(r, d, h); });
  });
}

// --- weighted sums

template <class T>
struct WeightedSums {
  using A = accumulate_t<T>;
  const Axes<A>& axes;
  Volume in, out;

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
    const ResampleAxis<A>& x = axes.width;
    for (int64_t w = 0; w < out.sizes[4]; ++w) {
      A total = 0;
      for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t)
        total += x.weight[t] * sum[x.index[t]];
      to[w * out.strides[4]] = static_cast<T>(total);
    }
  }

  // One pixel of two by two, in one pass over its channels.
  static void blend(const T* const* pixel, const A* weight, int64_t n, T* to) {
    const T *a = pixel[0], *b = pixel[1], *c = pixel[2], *d = pixel[3];
    for (int64_t i = 0; i < n; ++i) {
      A sum = A(0) + weight[0] * static_cast<A>(a[i]);
      sum += weight[1] * static_cast<A>(b[i]);
      sum += weight[2] * static_cast<A>(c[i]);
      to[i] = static_cast<T>(sum + weight[3] * static_cast<A>(d[i]));
    }
  }

  void side_by_side(ChannelRuns::Run r, int64_t d, int64_t h, A* sum) const {
    const T* from = in.at<const T>(r.image, r.channel);
    T* to = out.at<T>(r.image, r.channel) + d * out.strides[2] + h * out.strides[3];
    const ResampleAxis<A>& x = axes.width;
    const int64_t lines = axes.depth.count[d] * axes.height.count[h];
    for (int64_t w = 0; w < out.sizes[4]; ++w) {
      if (lines == 2 && x.count[w] == 2) {
        const T* pixel[4];
        A weight[4];
        int at = 0;
        axes.each_line(d, h, in, [&](int64_t offset, A by) {
          for (int64_t t = w * x.taps; t < w * x.taps + 2; ++t, ++at) {
            pixel[at] = from + offset + x.index[t] * in.strides[4];
            weight[at] = by * x.weight[t];
          }
        });
        blend(pixel, weight, r.length, to + w * out.strides[4]);
        continue;
      }
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

  void run() const {
    const ChannelRuns runs = channel_runs(in, out);
    const int64_t taps = axes.depth.taps * axes.height.taps;
    const int64_t cost = runs.length > 1 ? out.sizes[4] * taps * axes.width.taps * runs.length
                                         : in.sizes[4] * taps + out.sizes[4] * axes.width.taps;
    each_line<A>(runs, out, cost, std::max(in.sizes[4], runs.length),
                 [&](ChannelRuns::Run r, int64_t d, int64_t h, A* sum) {
                   if (runs.length > 1)
                     side_by_side(r, d, h, sum);
                   else
                     dense(r, d, h, sum);
                 });
  }
};

// The transpose of the sums; `out` holds the compute type.
template <class T>
struct SpreadGradients {
  using A = accumulate_t<T>;
  const Axes<A>& axes;
  Volume grad, out;
  bool pairs = in_pairs(axes.width, grad.sizes[4], out.sizes[4]);

  // Whether each element of a row gets the gradients of two neighbours as they are.
  static bool in_pairs(const ResampleAxis<A>& x, int64_t width, int64_t n) {
    bool yes = x.taps == 1 && width == 2 * n;
    for (int64_t w = 0; yes && w < width; ++w)
      yes = x.count[w] == 1 && x.index[w] == w / 2 && x.weight[w] == A(1);
    return yes;
  }

  void dense(ChannelRuns::Run r, int64_t d, int64_t h, A* sum) const {
    const T* from =
        grad.at<const T>(r.image, r.channel) + d * grad.strides[2] + h * grad.strides[3];
    const ResampleAxis<A>& x = axes.width;
    const int64_t n = out.sizes[4], step = out.strides[4];
    if (x.taps == 1)
      sum_neighbours(from, sum, n);
    else
      sum_taps(from, sum, n);
    A* to = out.at<A>(r.image, r.channel);
    axes.each_line(d, h, out, [&](int64_t offset, A weight) {
      for (int64_t i = 0; i < n; ++i) to[offset + i * step] += weight * sum[i];
    });
  }

  void sum_taps(const T* from, A* sum, int64_t n) const {
    const ResampleAxis<A>& x = axes.width;
    std::fill_n(sum, n, A(0));
    for (int64_t w = 0; w < grad.sizes[4]; ++w) {
      const A g = static_cast<A>(from[w * grad.strides[4]]);
      for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t)
        sum[x.index[t]] += x.weight[t] * g;
    }
  }
  // Where each gradient has one tap, those of an element are neighbours: their sum needs no memory.
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

  void side_by_side(ChannelRuns::Run r, int64_t d, int64_t h) const {
    const T* from =
        grad.at<const T>(r.image, r.channel) + d * grad.strides[2] + h * grad.strides[3];
    A* to = out.at<A>(r.image, r.channel);
    const ResampleAxis<A>& x = axes.width;
    for (int64_t w = 0; w < grad.sizes[4]; ++w)
      axes.each_line(d, h, out, [&](int64_t offset, A weight) {
        for (int64_t t = w * x.taps; t < w * x.taps + x.count[w]; ++t) {
          A* pixel = to + offset + x.index[t] * out.strides[4];
          const A by = weight * x.weight[t];
          for (int64_t c = 0; c < r.length; ++c)
            pixel[c] += by * static_cast<A>(from[w * grad.strides[4] + c]);
        }
      });
  }

  void image(ChannelRuns::Run r, bool runs, A* scratch) const {
    for (int64_t d = 0; d < grad.sizes[2]; ++d)
      for (int64_t h = 0; h < grad.sizes[3]; ++h)
        if (runs)
          side_by_side(r, d, h);
        else
          dense(r, d, h, scratch);
  }

  void run() const {
    const ChannelRuns runs = channel_runs(grad, out);
    const int64_t cost =
        grad.sizes[2] * grad.sizes[3] * (grad.sizes[4] + out.sizes[4]) * runs.length;
    parallel_for(runs.count, grain_of(cost), [&](int64_t begin, int64_t end) {
      const Tensor scratch = empty_tensor(IntVec{out.sizes[4]}, dtype_of<A>);
      for (int64_t i = begin; i < end; ++i) image(runs[i], runs.length > 1, scratch.data<A>());
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
