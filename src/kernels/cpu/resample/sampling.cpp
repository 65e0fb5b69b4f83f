#include "kernels/cpu/resample/sampling.h"

#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/resample/sampling_taps.h"

namespace facula::cpu {
namespace {

// The points of a grid, and how each reads the input.
template <class T>
struct GridReader {
  using A = accumulate_t<T>;
  Volume in;
  const Tensor& grid;
  int64_t spatial;
  Interpolation how;
  Padding padding;
  bool align;

  // Coordinates stand width first, against the order of the dimensions.
  const T* coordinates(int64_t n, int64_t d, int64_t h, int64_t w) const {
    const IntSpan s = grid.strides();
    const T* at = grid.data<const T>() + n * s[0];
    return spatial == 2 ? at + h * s[1] + w * s[2] : at + d * s[1] + h * s[2] + w * s[3];
  }
  PointTaps<A> taps(int64_t n, int64_t d, int64_t h, int64_t w) const {
    const T* c = coordinates(n, d, h, w);
    const int64_t step = grid.strides().back();
    PointTaps<A> p;
    for (int64_t i = 0; i < spatial; ++i)
      p.axis[2 - i] = axis_taps(static_cast<A>(c[i * step]), in.sizes[4 - i], how, padding, align);
    return p;
  }
};

template <class F>
void visit(DType d, int64_t spatial, F&& f) {
  dispatch<FloatingTypes>(
      d, spatial == 2 ? "grid_sampler_2d_cpu_kernel_impl" : "grid_sampler3d_cpu", f);
}

constexpr int most_taps = 64;  // 4 along each of three axes

typedef float Four __attribute__((vector_size(16)));
typedef double Pairs __attribute__((vector_size(16)));

// A run of points of a plane, each between four elements.
template <class T>
struct PlanePoints {
  using A = accumulate_t<T>;
  static constexpr int64_t most = 32;
  int64_t offset[4][most];
  A weight[4][most];
  bool inside[4][most];
  int64_t part[most], parts;  // the points of which some neighbours lie outside
  int64_t safe[most];         // the first neighbour, or an element that can be read
  A upper[2 * most], lower[2 * most];

  // Two neighbours along one axis. Positions far outside, and nan, are moved to where both
  // neighbours lie outside as well.
  struct Sides {
    A first[most], low[most], high[most];  // the lesser neighbour, and the weights of both
  };
  static void find_sides(const GridReader<T>& reader, const T* c, int64_t step, int64_t size,
                         int64_t count, Sides& sides) {
    A x[most];
    if (reader.padding == Padding::Zeros)
      for (int64_t i = 0; i < count; ++i)
        x[i] = unnormalized(static_cast<A>(c[i * step]), size, reader.align).x;
    else
      for (int64_t i = 0; i < count; ++i)
        x[i] = padded(unnormalized(static_cast<A>(c[i * step]), size, reader.align), size,
                      reader.padding, reader.align)
                   .x;
    const A end = static_cast<A>(size + 1);
    for (int64_t i = 0; i < count; ++i) {
      const A above = x[i] > A(-2) ? x[i] : A(-2), bounded = above < end ? above : end;
      const A first = std::floor(bounded);
      sides.first[i] = first;
      sides.low[i] = first + 1 - bounded;
      sides.high[i] = bounded - first;
    }
  }

  // Loops without branches, so that they become vectors; points at an edge are few.
  void find(const GridReader<T>& reader, int64_t n, int64_t h, int64_t first, int64_t count) {
    const IntSpan strides = reader.grid.strides();
    const int64_t step = strides.back(), next = strides[2];
    const T* c = reader.coordinates(n, 0, h, first);
    const int64_t height = reader.in.sizes[3], width = reader.in.sizes[4];
    Sides x, y;
    find_sides(reader, c, next, width, count, x);
    find_sides(reader, c + step, next, height, count, y);
    for (int64_t i = 0; i < count; ++i) {
      upper[2 * i] = y.low[i] * x.low[i];
      upper[2 * i + 1] = y.low[i] * x.high[i];
      lower[2 * i] = y.high[i] * x.low[i];
      lower[2 * i + 1] = y.high[i] * x.high[i];
    }
    bool whole[most];
    const A last_row = static_cast<A>(height - 1), last_column = static_cast<A>(width - 1);
    for (int64_t i = 0; i < count; ++i)
      whole[i] = (y.first[i] >= A(0)) & (y.first[i] < last_row) & (x.first[i] >= A(0)) &
                 (x.first[i] < last_column);
    parts = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = static_cast<int64_t>(y.first[i]) * reader.in.strides[3] +
                         static_cast<int64_t>(x.first[i]) * reader.in.strides[4];
      safe[i] = whole[i] ? at : 0;
      part[parts] = i;
      parts += !whole[i];
    }
    for (int64_t k = 0; k < parts; ++k) {
      const int64_t i = part[k];
      find_each(reader, static_cast<int64_t>(y.first[i]), static_cast<int64_t>(x.first[i]), i);
    }
  }
  // The four neighbours of a point of which some may lie outside.
  void find_each(const GridReader<T>& reader, int64_t row, int64_t column, int64_t i) {
    for (int t = 0; t < 4; ++t) {
      const int64_t y = row + t / 2, x = column + t % 2;
      inside[t][i] = static_cast<uint64_t>(y) < static_cast<uint64_t>(reader.in.sizes[3]) &&
                     static_cast<uint64_t>(x) < static_cast<uint64_t>(reader.in.sizes[4]);
      offset[t][i] = y * reader.in.strides[3] + x * reader.in.strides[4];
      const A* weights = t < 2 ? upper : lower;
      weight[t][i] = weights[2 * i + t % 2];
    }
  }

  // Whether neighbours along a row come with one load: see sample_pairs().
  static bool has_pairs(const Volume& in) {
    return std::is_same_v<T, float> && in.strides[4] == 1 && in.sizes[3] > 1 && in.sizes[4] > 1;
  }
  // Floats: points two by two, each between two pairs of neighbours. Points with a neighbour
  // outside are read at the first element and done again.
  void sample_pairs(const T* from, int64_t row_step, T* to, int64_t step, int64_t count) const {
    const auto read = [](const T* p,
                         const T* q) {  // two neighbours as one number of twice the size
      double left, right;
      __builtin_memcpy(&left, p, sizeof left);
      __builtin_memcpy(&right, q, sizeof right);
      return reinterpret_cast<Four>(Pairs{left, right});
    };
    int64_t i = 0;
    for (; i + 2 <= count; i += 2) {
      const T *p = from + safe[i], *q = from + safe[i + 1];
      Four above, below;
      __builtin_memcpy(&above, upper + 2 * i, sizeof above);
      __builtin_memcpy(&below, lower + 2 * i, sizeof below);
      const Four sum = read(p, q) * above + read(p + row_step, q + row_step) * below;
      const Four both = sum + __builtin_shufflevector(sum, sum, 1, 0, 3, 2);
      to[i * step] = both[0];
      to[(i + 1) * step] = both[2];
    }
    for (; i < count; ++i) sample_whole(from, row_step, 1, to, step, i);
    for (int64_t k = 0; k < parts; ++k) sample_one(from, to, step, part[k]);
  }

  // The sum's order is that of sample_one().
  void sample_whole(const T* from, int64_t row_step, int64_t column_step, T* to, int64_t step,
                    int64_t i) const {
    const T *p = from + safe[i], *q = p + row_step;
    A sum = 0;
    sum += static_cast<A>(p[0]) * upper[2 * i];
    sum += static_cast<A>(p[column_step]) * upper[2 * i + 1];
    sum += static_cast<A>(q[0]) * lower[2 * i];
    sum += static_cast<A>(q[column_step]) * lower[2 * i + 1];
    to[i * step] = static_cast<T>(sum);
  }
  void sample_one(const T* from, T* to, int64_t step, int64_t i) const {
    A sum = 0;
    for (int t = 0; t < 4; ++t)
      if (inside[t][i]) sum += static_cast<A>(from[offset[t][i]]) * weight[t][i];
    to[i * step] = static_cast<T>(sum);
  }
  void sample(const T* from, int64_t row_step, int64_t column_step, T* to, int64_t step,
              int64_t count) const {
    int64_t k = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (k < parts && part[k] == i) {
        sample_one(from, to, step, i);
        ++k;
      } else {
        sample_whole(from, row_step, column_step, to, step, i);
      }
    }
  }
};

template <class T>
void sample_plane_row(const GridReader<T>& reader, const Volume& out, int64_t n, int64_t h) {
  PlanePoints<T> points;
  const bool pairs = points.has_pairs(reader.in);
  for (int64_t w = 0; w < out.sizes[4]; w += points.most) {
    const int64_t count = std::min<int64_t>(points.most, out.sizes[4] - w);
    points.find(reader, n, h, w, count);
    for (int64_t c = 0; c < out.sizes[1]; ++c) {
      const T* from = reader.in.template at<const T>(n, c);
      T* to = out.at<T>(n, c) + h * out.strides[3] + w * out.strides[4];
      if constexpr (std::is_same_v<T, float>) {
        if (pairs) {
          points.sample_pairs(from, reader.in.strides[3], to, out.strides[4], count);
          continue;
        }
      }
      points.sample(from, reader.in.strides[3], reader.in.strides[4], to, out.strides[4], count);
    }
  }
}

template <class T>
void sample_row(const GridReader<T>& reader, const Volume& out, int64_t n, int64_t d, int64_t h) {
  using A = accumulate_t<T>;
  if (reader.spatial == 2 && reader.how == Interpolation::Linear)
    return sample_plane_row(reader, out, n, h);
  for (int64_t w = 0; w < out.sizes[4]; ++w) {
    int64_t offsets[most_taps];
    A weights[most_taps];
    int count = 0;
    reader.taps(n, d, h, w).each(reader.in, [&](int64_t offset, A weight, const A*) {
      offsets[count] = offset;
      weights[count++] = weight;
    });
    for (int64_t c = 0; c < out.sizes[1]; ++c) {
      const T* from = reader.in.template at<const T>(n, c);
      A sum = 0;
      for (int t = 0; t < count; ++t) sum += static_cast<A>(from[offsets[t]]) * weights[t];
      out.at<T>(n, c)[d * out.strides[2] + h * out.strides[3] + w * out.strides[4]] =
          static_cast<T>(sum);
    }
  }
}

// Gradients at one point; `sums` holds the input's gradient in the compute type.
template <class T>
struct PointGradient {
  using A = accumulate_t<T>;
  const GridReader<T>& reader;
  Volume grad;
  const Tensor& grad_input;
  const Tensor& grad_grid;

  void add(int64_t n, int64_t d, int64_t h, int64_t w, const Volume& sums) const {
    const PointTaps<A> taps = reader.taps(n, d, h, w);
    A by_axis[3] = {0, 0, 0};
    for (int64_t c = 0; c < grad.sizes[1]; ++c) {
      const A g = static_cast<A>(
          grad.at<const T>(n, c)[d * grad.strides[2] + h * grad.strides[3] + w * grad.strides[4]]);
      const T* from = reader.in.template at<const T>(n, c);
      taps.each(reader.in, [&](int64_t offset, A, const A* slopes) {
        for (int i = 0; i < 3; ++i) by_axis[i] += g * static_cast<A>(from[offset]) * slopes[i];
      });
      if (!grad_input.defined()) continue;
      A* to = sums.at<A>(n, c);
      taps.each(sums, [&](int64_t offset, A weight, const A*) { to[offset] += weight * g; });
    }
    if (!grad_grid.defined()) return;
    const IntSpan s = grad_grid.strides();
    T* to = grad_grid.data<T>() + n * s[0];
    to += reader.spatial == 2 ? h * s[1] + w * s[2] : d * s[1] + h * s[2] + w * s[3];
    for (int64_t i = 0; i < reader.spatial; ++i) to[i * s.back()] = static_cast<T>(by_axis[2 - i]);
  }

  void image(int64_t n, const Volume& sums) const {
    for (int64_t d = 0; d < grad.sizes[2]; ++d)
      for (int64_t h = 0; h < grad.sizes[3]; ++h)
        for (int64_t w = 0; w < grad.sizes[4]; ++w) add(n, d, h, w, sums);
  }
};

}  // namespace

void grid_sample(const Tensor& input, const Tensor& grid, int64_t spatial, Interpolation how,
                 Padding padding, bool align_corners, const Tensor& out) {
  const Volume to = volume_of(out, spatial);
  if (spatial == 2 && out.numel() == 0) return;  // of whatever dtype, as in PyTorch
  visit(input.dtype(), spatial, [&]<class T>(Type<T>) {
    const GridReader<T> reader{
        volume_of(input, spatial), grid, spatial, how, padding, align_corners};
    const int64_t rows = to.sizes[2] * to.sizes[3];
    const int64_t cost = std::max<int64_t>(to.sizes[4] * (16 + 8 * to.sizes[1]), 1);
    parallel_for(to.sizes[0] * rows, std::max<int64_t>((1 << 15) / cost, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r)
                     sample_row(reader, to, r / rows, r % rows / to.sizes[3], r % to.sizes[3]);
                 });
  });
}

void grid_sample_backward(const Tensor& grad, const Tensor& input, const Tensor& grid,
                          int64_t spatial, Interpolation how, Padding padding, bool align_corners,
                          const Tensor& grad_input, const Tensor& grad_grid) {
  const bool same = !grad_input.defined() || compute_of(grad_input.dtype()) == grad_input.dtype();
  const Tensor wide =
      same ? grad_input : empty_tensor(grad_input.sizes(), compute_of(grad_input.dtype()));
  if (wide.defined()) fill(wide, 0);
  const Volume sums = wide.defined() ? volume_of(wide, spatial) : Volume();
  visit(input.dtype(), spatial, [&]<class T>(Type<T>) {
    const GridReader<T> reader{
        volume_of(input, spatial), grid, spatial, how, padding, align_corners};
    const PointGradient<T> points{reader, volume_of(grad, spatial), grad_input, grad_grid};
    // Points of one image may meet in one element: images are what threads share.
    parallel_for(input.sizes()[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) points.image(n, sums);
    });
  });
  if (!same) copy(grad_input, wide);
}

}  // namespace facula::cpu
