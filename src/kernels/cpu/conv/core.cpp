#include "kernels/cpu/conv/core.h"

#include "kernels/cpu/conv/channels_last.h"
#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/conv/direct.h"
#include "kernels/cpu/conv/real_parts.h"
#include "kernels/cpu/conv/route.h"
#include "kernels/cpu/conv/winograd.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// What the taps are read from: `channels` of each group of each image.
template <class T>
struct TapSource {
  const T* data;
  int64_t strides[5];
  int64_t batch, groups, channels;
  PlaneLayout layout;
};

int64_t volume(const int64_t* v) { return v[0] * v[1] * v[2]; }

template <class T, class Acc>
void fill_unit(const TapSource<T>& s, Acc* planes, int64_t unit, int64_t begin, int64_t end) {
  const int64_t channel = unit % s.groups * s.channels + begin;
  fill_planes(planes + begin * s.layout.channel_pitch(),
              s.data + unit / s.groups * s.strides[0] + channel * s.strides[1], s.strides[1],
              s.strides + 2, s.layout, end - begin);
}

// A unit is one group of one image. Many or small units, or as many as keep all threads busy, are
// done side by side, each by one thread: planes that one thread fills and another reads come
// slowly. Few large ones are done in turn, each by all threads.
template <class T, class Acc>
void run_taps(const TapSource<T>& source, const TapSum<Acc>& sum, const TapResult<T>& result) {
  const DirectConvolution<T, Acc> engine(sum, source.layout, result);
  const int64_t units = source.batch * source.groups, panels = engine.panels();
  const int64_t plane = source.channels * source.layout.channel_pitch();
  const int64_t panel_work =
      max_of(sum.rows * max_of(sum.taps, int64_t{1}) * engine.lanes, int64_t{1});
  const int64_t grain = max_of((int64_t{1} << 18) / panel_work, int64_t{1});
  if (units >= 8 || units % num_threads() == 0 || panels <= grain) {
    parallel_for(units, max_of(grain / panels, int64_t{1}), [&](int64_t begin, int64_t end) {
      const Scratch<Acc> planes(plane + plane_slack);
      clear(planes.get(), plane + plane_slack);
      for (int64_t unit = begin; unit < end; ++unit) {
        fill_unit(source, planes.get(), unit, 0, source.channels);
        engine.run(planes.get(), unit / source.groups, unit % source.groups, 0, panels);
      }
    });
    return;
  }
  const Scratch<Acc> planes(plane + plane_slack);
  clear(planes.get(), plane + plane_slack);
  const int64_t fill_grain = max_of((int64_t{1} << 16) / source.layout.channel_pitch(), int64_t{1});
  for (int64_t unit = 0; unit < units; ++unit) {
    parallel_for(source.channels, fill_grain, [&](int64_t begin, int64_t end) {
      fill_unit(source, planes.get(), unit, begin, end);
    });
    parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
      engine.run(planes.get(), unit / source.groups, unit % source.groups, begin, end);
    });
  }
}

// Weights as the engine wants them: weight of (group, row, tap) is
// data[group * group_stride + row * row_stride + offsets[tap]].
template <class T>
struct WeightView {
  const T* data;
  int64_t group_stride, row_stride;
  const int64_t* offsets;
};

template <class T, class Acc>
void pack_weights(Acc* packed, const WeightView<T>& w, const TapSum<Acc>& sum, int64_t groups) {
  bool contiguous = true;
  for (int64_t t = 0; t < sum.taps; ++t) contiguous &= w.offsets[t] == t;
  const int64_t grain = max_of((int64_t{1} << 15) / max_of(sum.taps, int64_t{1}), int64_t{1});
  parallel_for(groups * sum.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / sum.rows, row = i % sum.rows;
      const T* from = w.data + group * w.group_stride + row * w.row_stride;
      Acc* to = packed + group * sum.group_pitch() + row * packed_pitch<Acc>;
      for (int64_t t = 0; t < sum.taps; t += tap_depth<Acc>, to += sum.rows * packed_pitch<Acc>) {
        const int64_t depth = min_of(tap_depth<Acc>, sum.taps - t);
        if (contiguous) {
          copy_row(to, from + t, 1, depth);
          continue;
        }
        for (int64_t x = 0; x < depth; ++x) to[x] = Convert<Acc, T>::call(from[w.offsets[t + x]]);
      }
    }
  });
}

template <class T>
void pack_and_run(const TapSource<T>& source, const WeightView<T>& weight,
                  TapSum<tile_sum_t<T>> sum, const TapResult<T>& result) {
  if (volume(sum.places) == 0) return;
  const Scratch<tile_sum_t<T>> packed(source.groups * sum.group_pitch());
  pack_weights(packed.get(), weight, sum, source.groups);
  sum.weights = packed.get();
  run_taps(source, sum, result);
}

// One real convolution; T is no complex or signed type.
template <class T>
void forward(const ConvShape& s, const ConvTensor<const T>& input,
             const ConvTensor<const T>& weight, const TapResult<T>& result) {
  const int64_t channels = s.in_channels / s.groups, rows = s.out_channels / s.groups;
  TapSource<T> source{input.data, {}, s.batch, s.groups, channels, input_layout(s)};
  __builtin_memcpy(source.strides, input.strides, sizeof source.strides);
  share_padding(source.layout, s.output[2]);
  const int64_t taps = channels * volume(s.kernel);
  const Scratch<int64_t> table(2 * taps);
  int64_t* offsets = table.get();
  int64_t* weight_offsets = offsets + taps;
  const int64_t* st = weight.strides;
  int64_t n = 0, tap[3];
  for (int64_t c = 0; c < channels; ++c) {
    for (tap[0] = 0; tap[0] < s.kernel[0]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < s.kernel[1]; ++tap[1]) {
        for (tap[2] = 0; tap[2] < s.kernel[2]; ++tap[2], ++n) {
          offsets[n] = c * source.layout.channel_pitch() + input_offset(s, source.layout, tap);
          weight_offsets[n] = c * st[1] + tap[0] * st[2] + tap[1] * st[3] + tap[2] * st[4];
        }
      }
    }
  }
  TapSum<tile_sum_t<T>> sum{rows, taps, nullptr, offsets, {}};
  __builtin_memcpy(sum.places, s.output, sizeof sum.places);
  pack_and_run(source, {weight.data, rows * st[0], st[0], weight_offsets}, sum, result);
}

int64_t phase_places(const ConvShape& s, int d, int64_t phase) {
  return phase < s.input[d] ? ceil_div(s.input[d] - phase, s.stride[d]) : 0;
}

PlaneLayout gradient_layout(const ConvShape& s) {
  PlaneLayout l;
  for (int d = 0; d < 3; ++d) {
    l.size[d] = s.output[d];
    l.step[d] = 1;
    l.pad[d] = 0;
    l.extent[d] = max_of(phase_places(s, d, 0), int64_t{1});
    for (int64_t k = 0; k < s.kernel[d]; ++k)
      l.pad[d] = max_of(l.pad[d], -phase_of_tap(s, d, k).shift);
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      const PhaseTap t = phase_of_tap(s, d, k);
      const int64_t end = l.pad[d] + t.shift + phase_places(s, d, t.phase);
      l.extent[d] = max_of(l.extent[d], end);
    }
  }
  share_padding(l, phase_places(s, 2, 0));
  return l;
}

template <class T>
class InputGradient {
 public:
  InputGradient(const ConvShape& s, const ConvTensor<const T>& grad,
                const ConvTensor<const T>& weight, const TapResult<T>& result)
      : s_(s),
        weight_(weight),
        result_(result),
        source_{grad.data, {}, s.batch, s.groups, s.out_channels / s.groups, gradient_layout(s)},
        table_(2 * source_.channels * volume(s.kernel)) {
    __builtin_memcpy(source_.strides, grad.strides, sizeof source_.strides);
  }

  void run() {
    int64_t phase[3];
    for (phase[0] = 0; phase[0] < s_.stride[0]; ++phase[0]) {
      for (phase[1] = 0; phase[1] < s_.stride[1]; ++phase[1]) {
        for (phase[2] = 0; phase[2] < s_.stride[2]; ++phase[2]) run_phase(phase);
      }
    }
  }

 private:
  void run_phase(const int64_t* phase) {
    TapResult<T> result = result_;
    TapSum<tile_sum_t<T>> sum{s_.in_channels / s_.groups, 0, nullptr, table_.get(), {}};
    for (int d = 0; d < 3; ++d) {
      sum.places[d] = phase_places(s_, d, phase[d]);
      result.data += phase[d] * result_.strides[d + 2];
      result.strides[d + 2] *= s_.stride[d];
    }
    if (volume(sum.places) == 0) return;
    int64_t* weight_offsets = table_.get() + source_.channels * volume(s_.kernel);
    sum.taps = list_taps(phase, table_.get(), weight_offsets);
    const int64_t group_stride = source_.channels * weight_.strides[0];
    pack_and_run(source_, {weight_.data, group_stride, weight_.strides[1], weight_offsets}, sum,
                 result);
  }

  int64_t list_taps(const int64_t* phase, int64_t* offsets, int64_t* weight_offsets) const {
    const PlaneLayout& l = source_.layout;
    int64_t n = 0, tap[3];
    for (int64_t c = 0; c < source_.channels; ++c) {
      for (tap[0] = 0; tap[0] < s_.kernel[0]; ++tap[0]) {
        for (tap[1] = 0; tap[1] < s_.kernel[1]; ++tap[1]) {
          for (tap[2] = 0; tap[2] < s_.kernel[2]; ++tap[2]) {
            int64_t place = 0, at = c * weight_.strides[0];
            bool mine = true;
            for (int d = 0; d < 3; ++d) {
              const PhaseTap t = phase_of_tap(s_, d, tap[d]);
              mine &= t.phase == phase[d];
              place = place * l.extent[d] + l.pad[d] + t.shift;
              at += tap[d] * weight_.strides[d + 2];
            }
            if (!mine) continue;
            offsets[n] = c * l.channel_pitch() + place;
            weight_offsets[n++] = at;
          }
        }
      }
    }
    return n;
  }

  const ConvShape& s_;
  const ConvTensor<const T>& weight_;
  const TapResult<T>& result_;
  TapSource<T> source_;
  Scratch<int64_t> table_;
};

template <class T>
TapResult<conv_element_t<T>> result_of(const ConvTensor<T>& out, const T* bias,
                                       const PartProduct& part) {
  using E = conv_element_t<T>;
  const auto view = element_view(out, part.result);
  TapResult<E> result{view.data, {}, nullptr, is_complex_v<T> ? 2 : 1, part.subtract, part.add};
  __builtin_memcpy(result.strides, view.strides, sizeof result.strides);
  if (bias != nullptr) result.bias = element_pointer<E>(bias) + part.result;
  return result;
}

// Winograd's method, and the route that is next for each image whose results are not finite.
template <class T, class Fast, class Rest>
void by_images(const ConvProblem& problem, ConvTensor<const T> source, ConvTensor<T> result,
               const Fast& fast, const Rest& rest) {
  const Scratch<uint8_t> broken(problem.shape.batch);
  clear(broken.get(), problem.shape.batch);
  fast(broken.get());
  ConvShape image = problem.shape;
  image.batch = 1;
  for (int64_t i = 0; i < problem.shape.batch; ++i) {
    if (broken.get()[i] != 0) {
      const Route next =
          conv_route({problem.pass, problem.dtype, image, source.strides, result.strides, false});
      rest(next, image, source, result);
    }
    source.data += source.strides[0];
    result.data += result.strides[0];
  }
}

template <class T>
void forward_by(Route route, const ConvShape& given, ConvTensor<const T> input,
                const ConvTensor<const T>& weight, const T* bias, const ConvTensor<T>& output) {
  if constexpr (has_depthwise<T>) {
    if (route == Route::DepthwisePlanes)
      return depthwise_planes_forward(given, input, weight, bias, output);
    if (route == Route::Depthwise) return depthwise_forward(given, input, weight, bias, output);
  }
  const ConvShape shape = without_stride(given, input);
  if constexpr (std::is_same_v<T, float>) {
    if (route == Route::Winograd)
      return by_images(
          {ConvPass::Forward, dtype_of<T>, shape, input.strides, output.strides}, input, output,
          [&](uint8_t* broken) { winograd_forward(shape, input, weight, bias, output, broken); },
          [&](Route next, const ConvShape& image, const ConvTensor<const T>& from,
              const ConvTensor<T>& to) { forward_by(next, image, from, weight, bias, to); });
  }
  if constexpr (has_im2col<T>) {
    if (route == Route::Im2col) return im2col_forward(shape, input, weight, bias, output);
  }
  for_each_part<T>([&](const PartProduct& part) {
    forward<conv_element_t<T>>(shape, element_view(input, part.left),
                               element_view(weight, part.right), result_of(output, bias, part));
  });
}

template <class T>
void backward_input_by(Route route, const ConvShape& shape, const ConvTensor<const T>& grad_output,
                       const ConvTensor<const T>& weight, const T* bias,
                       const ConvTensor<T>& grad_input) {
  if constexpr (has_depthwise<T>) {
    if (route == Route::DepthwisePlanes)
      return depthwise_planes_backward_input(shape, grad_output, weight, bias, grad_input);
    if (route == Route::Depthwise)
      return depthwise_backward_input(shape, grad_output, weight, bias, grad_input);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (route == Route::Winograd)
      return by_images(
          {ConvPass::InputGradient, dtype_of<T>, shape, grad_output.strides, grad_input.strides},
          grad_output, grad_input,
          [&](uint8_t* broken) {
            winograd_backward_input(shape, grad_output, weight, bias, grad_input, broken);
          },
          [&](Route next, const ConvShape& image, const ConvTensor<const T>& from,
              const ConvTensor<T>& to) { backward_input_by(next, image, from, weight, bias, to); });
  }
  if constexpr (has_im2col<T>) {
    if (route == Route::Im2col)
      return im2col_backward_input(shape, grad_output, weight, bias, grad_input);
  }
  for_each_part<T>([&](const PartProduct& part) {
    const auto grad = element_view(grad_output, part.left);
    const auto right = element_view(weight, part.right);
    const auto result = result_of(grad_input, bias, part);
    InputGradient<conv_element_t<T>>(shape, grad, right, result).run();
  });
}

}  // namespace

template <class T>
void conv_forward(const ConvShape& shape, ConvTensor<const T> input, ConvTensor<const T> weight,
                  const T* bias, ConvTensor<T> output) {
  if (shape.batch <= 0 || shape.out_channels <= 0 || volume(shape.output) <= 0) return;
  const Route route =
      conv_route({ConvPass::Forward, dtype_of<T>, shape, input.strides, output.strides});
  forward_by(route, shape, input, weight, bias, output);
}

template <class T>
void conv_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                         ConvTensor<const T> weight, const T* bias, ConvTensor<T> grad_input) {
  if (shape.batch <= 0 || shape.in_channels <= 0 || volume(shape.input) <= 0) return;
  const Route route = conv_route(
      {ConvPass::InputGradient, dtype_of<T>, shape, grad_output.strides, grad_input.strides});
  backward_input_by(route, shape, grad_output, weight, bias, grad_input);
}

// An explicit instantiation names every type by hand; this is one of each function.
template <class T>
struct ConvInstance {
  static constexpr auto forward_function = &conv_forward<T>;
  static constexpr auto backward_function = &conv_backward_input<T>;
};
template struct ConvInstance<float>;
template struct ConvInstance<double>;
template struct ConvInstance<Half>;
template struct ConvInstance<BFloat16>;
template struct ConvInstance<complex64>;
template struct ConvInstance<complex128>;
template struct ConvInstance<int8_t>;
template struct ConvInstance<int16_t>;
template struct ConvInstance<int32_t>;
template struct ConvInstance<int64_t>;
template struct ConvInstance<uint8_t>;
template struct ConvInstance<uint16_t>;
template struct ConvInstance<uint32_t>;
template struct ConvInstance<uint64_t>;

}  // namespace facula::cpu::FACULA_ISA
