// The gradients of a convolution by its weights and its bias.
#include "core/threads.h"
#include "kernels/cpu/conv/channels_last.h"
#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/conv/direct_weight_gradient.h"
#include "kernels/cpu/conv/real_parts.h"
#include "kernels/cpu/conv/route.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/matmul/gemm_dot.h"
#include "kernels/cpu/matmul/gemm_kernel.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Gradients of so few output channels of a group would leave most lanes of a tile empty.
inline constexpr int64_t max_narrow_outputs = 3;

// grad_weight^T[(channel, tap), out channel] = sum over images and positions of
// planes[channel][position + offset(tap)] * grad_output[out channel][position].
//
// The sum over the batch is cut into parts, of a number fixed by the shape, each with sums of its
// own that are added up in order: the same bits for any number of threads.
template <class T>
class WeightGradient {
 public:
  using Acc = tile_sum_t<T>;
  using S = Simd<Acc>;

  WeightGradient(const ConvShape& s, const ConvTensor<const T>& grad,
                 const ConvTensor<const T>& input)
      : s_(s), grad_(grad), input_(input), layout_(input_layout(s)), grad_layout_(layout_) {
    channels_ = s.in_channels / s.groups;
    outs_ = s.out_channels / s.groups;
    taps_ = s.kernel[0] * s.kernel[1] * s.kernel[2];
    for (int d = 0; d < 3; ++d) {
      grad_layout_.size[d] = s.output[d];
      grad_layout_.step[d] = 1;
      grad_layout_.pad[d] = 0;
    }
    grad_layout_.extent[0] = s.output[0];
    span_ = (s.output[0] - 1) * layout_.slice_pitch() + (s.output[1] - 1) * layout_.row_pitch() +
            s.output[2];
    narrow_ = outs_ <= max_narrow_outputs;
    pitch_ = narrow_ ? outs_ : round_up(outs_, S::lanes);
    block_ = max_of(int64_t{1}, min_of(channels_, 12 * max_tile_rows / taps_));
    blocks_ = ceil_div(channels_, block_);
    parts_ = min_of(s.batch, max_of(int64_t{1}, 8 / (blocks_ * s.groups)));
  }

  // Writes each element of `out` as the sum, or adds the sum to it or takes it away.
  void run(const ConvTensor<T>& out, bool subtract, bool add) const {
    const Scratch<int64_t> table(taps_);
    list_offsets(table.get());
    const Scratch<Acc> sums(parts_ * part_pitch());
    const int64_t work = ceil_div(s_.batch, parts_) * block_ * taps_ * outs_ * span_;
    const int64_t grain = max_of((int64_t{1} << 18) / work, int64_t{1});
    parallel_for(parts_ * s_.groups * blocks_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) run_job(job, table.get(), sums.get());
    });
    const int64_t rows = s_.groups * channels_ * taps_;
    const int64_t row_grain = max_of((int64_t{1} << 16) / (outs_ * parts_), int64_t{1});
    parallel_for(rows, row_grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) write_row(out, sums.get(), row, subtract, add);
    });
  }

 private:
  int64_t part_pitch() const { return s_.groups * channels_ * taps_ * pitch_; }

  void list_offsets(int64_t* offsets) const {
    int64_t n = 0, tap[3];
    for (tap[0] = 0; tap[0] < s_.kernel[0]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < s_.kernel[1]; ++tap[1]) {
        for (tap[2] = 0; tap[2] < s_.kernel[2]; ++tap[2])
          offsets[n++] = input_offset(s_, layout_, tap);
      }
    }
  }

  // One part of the batch, one group, one block of input channels.
  void run_job(int64_t job, const int64_t* offsets, Acc* sums) const {
    const int64_t block = job % blocks_, group = job / blocks_ % s_.groups;
    const int64_t part = job / blocks_ / s_.groups;
    const int64_t first = block * block_, count = min_of(block_, channels_ - first);
    sums += part * part_pitch() + (group * channels_ + first) * taps_ * pitch_;
    clear(sums, count * taps_ * pitch_);
    const int64_t plane = count * layout_.channel_pitch();
    const Scratch<Acc> planes(plane + plane_slack);
    const Scratch<Acc> grads(outs_ * grad_layout_.channel_pitch());
    clear(planes.get(), plane + plane_slack);
    clear(grads.get(), outs_ * grad_layout_.channel_pitch());
    const int64_t last = (part + 1) * s_.batch / parts_;
    for (int64_t image = part * s_.batch / parts_; image < last; ++image) {
      fill(planes.get(), input_, layout_, image, group * channels_ + first, count);
      fill(grads.get(), grad_, grad_layout_, image, group * outs_, outs_);
      if (narrow_) {
        add_dots(planes.get(), grads.get(), offsets, count, sums);
      } else {
        add_tiles(planes.get(), grads.get(), offsets, count, sums);
      }
    }
  }

  static void fill(Acc* to, const ConvTensor<const T>& from, const PlaneLayout& layout,
                   int64_t image, int64_t channel, int64_t count) {
    fill_planes(to, from.data + image * from.strides[0] + channel * from.strides[1],
                from.strides[1], from.strides + 2, layout, count);
  }

  void add_tiles(const Acc* planes, const Acc* grads, const int64_t* offsets, int64_t count,
                 Acc* sums) const {
    const RowPanels rows(count * taps_);
    const int64_t width = tile_vectors(rows.tallest()) * S::lanes;
    const Scratch<Acc> left(rows.rows * packed_pitch<Acc>);
    const Scratch<Acc> right(weight_sum_depth * width);
    for (int64_t step = 0; step < span_; step += weight_sum_depth) {
      const int64_t depth = min_of(weight_sum_depth, span_ - step);
      for (int64_t r = 0; r < rows.rows; ++r) {
        const Acc* from = planes + r / taps_ * layout_.channel_pitch() + offsets[r % taps_];
        copy_row(left.get() + r * packed_pitch<Acc>, from + step, 1, depth);
      }
      for (int64_t col = 0; col < outs_; col += width) {
        const int64_t cols = min_of(width, outs_ - col), padded = round_up(cols, S::lanes);
        copy_padded(right.get(), width, grads + col * grad_layout_.channel_pitch() + step, 1,
                    grad_layout_.channel_pitch(), depth, cols, padded);
        for (int64_t i = 0; i < rows.count; ++i) {
          tile_kernel<Acc>(rows.height(i), static_cast<int>(padded / S::lanes))(
              depth, left.get() + rows.begin(i) * packed_pitch<Acc>, right.get(), width,
              sums + rows.begin(i) * pitch_ + col, pitch_, Acc(1), Acc(1));
        }
      }
    }
  }

  void add_dots(const Acc* planes, const Acc* grads, const int64_t* offsets, int64_t count,
                Acc* sums) const {
    for (int64_t c = 0; c < count; ++c) {
      const Acc* plane = planes + c * layout_.channel_pitch();
      for (int64_t o = 0; o < outs_; ++o) {
        const Acc* grad = grads + o * grad_layout_.channel_pitch();
        Acc* to = sums + c * taps_ * pitch_ + o;
        int64_t t = 0;
        for (; t + 4 <= taps_; t += 4) dots<4>(plane, grad, offsets + t, to + t * pitch_);
        for (; t < taps_; ++t) dots<1>(plane, grad, offsets + t, to + t * pitch_);
      }
    }
  }

  template <int N>
  void dots(const Acc* plane, const Acc* grad, const int64_t* offsets, Acc* to) const {
    using V = typename S::Vec;
    V sum[N] = {};
    int64_t x = 0;
    for (; x + S::lanes <= span_; x += S::lanes) {
      const V right = S::load(grad + x);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i)
        sum[i] = multiply_add<V>(S::load(plane + offsets[i] + x), right, sum[i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      Acc total = sum_of<Acc>(sum[i]);
      for (int64_t y = x; y < span_; ++y) total += plane[offsets[i] + y] * grad[y];
      to[i * pitch_] += total;
    }
  }

  void write_row(const ConvTensor<T>& out, Acc* sums, int64_t row, bool subtract, bool add) const {
    const int64_t tap = row % taps_, channel = row / taps_ % channels_;
    const int64_t group = row / taps_ / channels_;
    const int64_t* st = out.strides;
    const int64_t* k = s_.kernel;
    T* to = out.data + group * outs_ * st[0] + channel * st[1] + tap / (k[1] * k[2]) * st[2] +
            tap / k[2] % k[1] * st[3] + tap % k[2] * st[4];
    Acc* total = sums + row * pitch_;
    for (int64_t part = 1; part < parts_; ++part) {
      const Acc* more = total + part * part_pitch();
      for (int64_t o = 0; o < outs_; ++o) total[o] += more[o];
    }
    for (int64_t o = 0; o < outs_; ++o) {
      const Acc value = subtract ? -total[o] : total[o];
      const Acc old = add ? Convert<Acc, T>::call(to[o * st[0]]) : Acc(0);
      to[o * st[0]] = Convert<T, Acc>::call(old + value);
    }
  }

  const ConvShape& s_;
  const ConvTensor<const T>& grad_;
  const ConvTensor<const T>& input_;
  PlaneLayout layout_, grad_layout_;
  int64_t channels_, outs_, taps_, span_, pitch_, block_, blocks_, parts_;
  bool narrow_;
};

// What a bias gradient sums in: long sums of one element type, so wider than that.
template <class T>
using bias_sum_t = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <class T>
struct BiasConvert {
  [[gnu::always_inline]] static bias_sum_t<T> widen(T x) {
    using Mid = std::conditional_t<std::is_integral_v<T>, T, tile_sum_t<T>>;
    return static_cast<bias_sum_t<T>>(Convert<Mid, T>::call(x));
  }
  [[gnu::always_inline]] static T narrow(bias_sum_t<T> x) {
    using Mid = std::conditional_t<std::is_integral_v<T>, T, tile_sum_t<T>>;
    return Convert<T, Mid>::call(static_cast<Mid>(x));
  }
};

template <class T>
bias_sum_t<T> sum_row(const T* row, int64_t stride, int64_t count) {
  constexpr int64_t lanes = 8;
  bias_sum_t<T> sum[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int64_t l = 0; l < lanes; ++l) sum[l] += BiasConvert<T>::widen(row[(i + l) * stride]);
  }
  for (; i < count; ++i) sum[i % lanes] += BiasConvert<T>::widen(row[i * stride]);
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// One channel: rows are summed first, then the rows of a slice, then slices and images.
template <class T>
T sum_channel(const ConvShape& s, const ConvTensor<const T>& grad, int64_t channel) {
  const int64_t* st = grad.strides;
  bias_sum_t<T> total = 0;
  for (int64_t image = 0; image < s.batch; ++image) {
    for (int64_t z = 0; z < s.output[0]; ++z) {
      const T* slice = grad.data + image * st[0] + channel * st[1] + z * st[2];
      bias_sum_t<T> sum = 0;
      for (int64_t y = 0; y < s.output[1]; ++y)
        sum += sum_row(slice + y * st[3], st[4], s.output[2]);
      total += sum;
    }
  }
  return BiasConvert<T>::narrow(total);
}

template <class T>
void bias_gradient(const ConvShape& s, const ConvTensor<const T>& grad, T* to, int64_t stride) {
  const int64_t work = s.batch * s.output[0] * s.output[1] * s.output[2];
  const int64_t grain = max_of((int64_t{1} << 16) / max_of(work, int64_t{1}), int64_t{1});
  parallel_for(s.out_channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) to[c * stride] = sum_channel(s, grad, c);
  });
}

template <class T>
void clear_weights(const ConvShape& s, const ConvTensor<T>& w) {
  for (int64_t o = 0; o < s.out_channels; ++o) {
    for (int64_t c = 0; c < s.in_channels / s.groups; ++c) {
      for (int64_t z = 0; z < s.kernel[0]; ++z) {
        for (int64_t y = 0; y < s.kernel[1]; ++y) {
          for (int64_t x = 0; x < s.kernel[2]; ++x)
            w.data[o * w.strides[0] + c * w.strides[1] + z * w.strides[2] + y * w.strides[3] +
                   x * w.strides[4]] = T(0);
        }
      }
    }
  }
}

template <class T>
void backward_weight_by(Route route, const ConvShape& given, const ConvTensor<const T>& grad_output,
                        ConvTensor<const T> input, const ConvTensor<T>& grad_weight) {
  if constexpr (has_depthwise<T>) {
    if (route == Route::DepthwisePlanes)
      return depthwise_planes_backward_weight(given, grad_output, input, grad_weight);
    if (route == Route::Depthwise)
      return depthwise_backward_weight(given, grad_output, input, grad_weight);
  }
  const ConvShape shape = without_stride(given, input);
  if constexpr (std::is_same_v<T, float>) {
    if (route == Route::Winograd) {
      if (winograd_backward_weight(shape, grad_output, input, grad_weight)) return;
      route = conv_route({ConvPass::WeightGradient, dtype_of<T>, shape, grad_output.strides,
                          input.strides, false});
    }
  }
  if constexpr (has_im2col<T>) {
    if (route == Route::Im2col)
      return im2col_backward_weight(shape, grad_output, input, grad_weight);
  }
  for_each_part<T>([&](const PartProduct& part) {
    using E = conv_element_t<T>;
    const auto grad = element_view(grad_output, part.left);
    const auto source = element_view(input, part.right);
    const auto result = element_view(grad_weight, part.result);
    if (route == Route::Channels)
      DirectWeightGradient<E>(shape, grad, source).run(result, part.subtract, part.add);
    else
      WeightGradient<E>(shape, grad, source).run(result, part.subtract, part.add);
  });
}

}  // namespace

template <class T>
void conv_backward_weight(const ConvShape& shape, ConvTensor<const T> grad_output,
                          ConvTensor<const T> input, ConvTensor<T> grad_weight) {
  const int64_t weights = shape.out_channels * shape.in_channels;
  if (weights <= 0 || shape.kernel[0] * shape.kernel[1] * shape.kernel[2] <= 0) return;
  const int64_t positions = shape.output[0] * shape.output[1] * shape.output[2];
  if (shape.batch <= 0 || positions <= 0) return clear_weights(shape, grad_weight);
  const Route route = conv_route(
      {ConvPass::WeightGradient, dtype_of<T>, shape, grad_output.strides, input.strides});
  backward_weight_by(route, shape, grad_output, input, grad_weight);
}

template <class T>
void conv_backward_bias(const ConvShape& shape, ConvTensor<const T> grad_output, T* grad_bias) {
  constexpr int parts = is_complex_v<T> ? 2 : 1;
  for (int part = 0; part < parts; ++part) {
    bias_gradient<conv_element_t<T>>(shape, element_view(grad_output, part),
                                     element_pointer<conv_element_t<T>>(grad_bias) + part, parts);
  }
}

// An explicit instantiation names every type by hand; this is one of each function.
template <class T>
struct ConvGradientInstance {
  static constexpr auto weight_function = &conv_backward_weight<T>;
  static constexpr auto bias_function = &conv_backward_bias<T>;
};
template struct ConvGradientInstance<float>;
template struct ConvGradientInstance<double>;
template struct ConvGradientInstance<Half>;
template struct ConvGradientInstance<BFloat16>;
template struct ConvGradientInstance<complex64>;
template struct ConvGradientInstance<complex128>;
template struct ConvGradientInstance<int8_t>;
template struct ConvGradientInstance<int16_t>;
template struct ConvGradientInstance<int32_t>;
template struct ConvGradientInstance<int64_t>;
template struct ConvGradientInstance<uint8_t>;
template struct ConvGradientInstance<uint16_t>;
template struct ConvGradientInstance<uint32_t>;
template struct ConvGradientInstance<uint64_t>;

}  // namespace facula::cpu::FACULA_ISA
