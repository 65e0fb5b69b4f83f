#include "kernels/cpu/conv/channels_last.h"

#include "kernels/cpu/conv/bf16_weight_gradient.h"
#include "kernels/cpu/conv/channels_last_copy.h"
#include "kernels/cpu/conv/channels_last_gemm.h"
#include "kernels/cpu/conv/pointwise.h"

namespace facula::cpu::FACULA_ISA {
namespace {

int64_t volume(const int64_t* v) { return v[0] * v[1] * v[2]; }

template <class T>
struct ProductsOf {
  using type = FloatProducts;
};
#if defined(__AVX512F__)
template <>
struct ProductsOf<BFloat16> {
  using type = PairProducts;
};
#endif
template <class T>
inline constexpr bool is_built = std::is_same_v<typename ProductsOf<T>::type::Element, T>;

template <class T>
void run_sum(const Im2col<T>& im2col, const TapWeights<T>& weights, const ConvTensor<T>& result,
             const T* bias, const ConvShape& s, int64_t rows) {
  ChannelsLastResult<T> to{result.data, {}, bias};
  __builtin_memcpy(to.strides, result.strides, sizeof to.strides);
  ChannelsLastGemm<typename ProductsOf<T>::type>(im2col, weights, to, s.batch, s.groups, rows)
      .run();
}

template <class T>
void forward(const ConvShape& s, const ConvTensor<const T>& input,
             const ConvTensor<const T>& weight, const T* bias, const ConvTensor<T>& output) {
  const InputTaps<T> taps(s, input);
  const Scratch<int64_t> places(volume(s.kernel));
  const int64_t* st = weight.strides;
  int64_t* to = places.get();
  for (int64_t z = 0; z < s.kernel[0]; ++z)
    for (int64_t y = 0; y < s.kernel[1]; ++y)
      for (int64_t x = 0; x < s.kernel[2]; ++x) *to++ = z * st[2] + y * st[3] + x * st[4];
  const int64_t rows = s.out_channels / s.groups;
  run_sum(taps.im2col(), {weight.data, rows * st[0], st[0], st[1], places.get()}, output, bias, s,
          rows);
}

// The taps along each dimension that reach input elements of one phase.
class PhaseTaps {
 public:
  PhaseTaps(const ConvShape& s, const int64_t* phase, const int64_t* weight_strides)
      : shifts_(s.kernel[0] + s.kernel[1] + s.kernel[2]), places_(volume(s.kernel)) {
    int64_t* at = shifts_.get();
    const Scratch<int64_t> kernel(s.kernel[0] + s.kernel[1] + s.kernel[2]);
    int64_t* own[3] = {kernel.get(), kernel.get() + s.kernel[0],
                       kernel.get() + s.kernel[0] + s.kernel[1]};
    for (int d = 0; d < 3; ++d) {
      const int64_t count =
          phase[d] < s.input[d] ? ceil_div(s.input[d] - phase[d], s.stride[d]) : 0;
      lines_[d] = {count, s.output[d], 1, 0, at};
      // In falling order: neighbouring taps then read neighbouring places.
      for (int64_t k = s.kernel[d] - 1; k >= 0; --k) {
        const PhaseTap t = phase_of_tap(s, d, k);
        if (t.phase != phase[d]) continue;
        own[d][lines_[d].count++] = k;
        *at++ = t.shift;
      }
    }
    int64_t* to = places_.get();
    for (int64_t z = 0; z < lines_[0].count; ++z)
      for (int64_t y = 0; y < lines_[1].count; ++y)
        for (int64_t x = 0; x < lines_[2].count; ++x)
          *to++ = own[0][z] * weight_strides[2] + own[1][y] * weight_strides[3] +
                  own[2][x] * weight_strides[4];
  }
  const TapLine* lines() const { return lines_; }
  const int64_t* places() const { return places_.get(); }

 private:
  Scratch<int64_t> shifts_, places_;
  TapLine lines_[3];
};

template <class T>
void run_phase(const ConvShape& s, const int64_t* phase, const ConvTensor<const T>& grad,
               const ConvTensor<const T>& weight, const T* bias, ConvTensor<T> result) {
  const PhaseTaps taps(s, phase, weight.strides);
  const int64_t channels = s.out_channels / s.groups;
  Im2col<T> im2col{grad.data, {}, channels, {}};
  __builtin_memcpy(im2col.strides, grad.strides, sizeof im2col.strides);
  for (int d = 0; d < 3; ++d) {
    im2col.lines[d] = taps.lines()[d];
    result.data += phase[d] * result.strides[d + 2];
    result.strides[d + 2] *= s.stride[d];
  }
  if (im2col.places() == 0) return;
  const int64_t* st = weight.strides;
  run_sum(im2col, {weight.data, channels * st[0], st[1], st[0], taps.places()}, result, bias, s,
          s.in_channels / s.groups);
}

template <class T>
void backward_input(const ConvShape& s, const ConvTensor<const T>& grad,
                    const ConvTensor<const T>& weight, const T* bias, const ConvTensor<T>& result) {
  int64_t phase[3];
  for (phase[0] = 0; phase[0] < s.stride[0]; ++phase[0])
    for (phase[1] = 0; phase[1] < s.stride[1]; ++phase[1])
      for (phase[2] = 0; phase[2] < s.stride[2]; ++phase[2])
        run_phase(s, phase, grad, weight, bias, result);
}

// Multiplies image by image, and returns true, where that spares copies with the channels
// innermost. The result's channels are dimension `rows` of the weight.
template <class T>
bool run_on_planes(const ConvShape& s, const ConvTensor<const T>& source,
                   const ConvTensor<T>& result, const ConvTensor<const T>& weight, int rows,
                   const T* bias) {
  if constexpr (std::is_same_v<T, float>) {
    if (!is_pointwise(s) || !has_dense_planes(source, s.output) ||
        !has_dense_planes(result, s.output))
      return false;
    const int64_t channels[] = {s.out_channels, s.in_channels}, *strides = weight.strides;
    PointwiseProduct{s.batch,     channels[rows], channels[1 - rows], volume(s.output),
                     weight.data, strides[rows],  strides[1 - rows],  bias}
        .run(source, result);
    return true;
  }
  return false;
}

}  // namespace

template <class T>
void im2col_forward(const ConvShape& s, const ConvTensor<const T>& input,
                    const ConvTensor<const T>& weight, const T* bias, const ConvTensor<T>& output) {
  if (run_on_planes(s, input, output, weight, 0, bias)) return;
  if constexpr (is_built<T>) {
    const ChannelsLastCopy<const T> source(input, s.batch, s.in_channels, s.input);
    const ChannelsLastCopy<T> result(output, s.batch, s.out_channels, s.output);
    source.fill();
    forward(s, source.view(), weight, bias, result.view());
    result.write_back();
  }
}

template <class T>
void im2col_backward_input(const ConvShape& s, const ConvTensor<const T>& grad_output,
                           const ConvTensor<const T>& weight, const T* bias,
                           const ConvTensor<T>& grad_input) {
  if (run_on_planes(s, grad_output, grad_input, weight, 1, bias)) return;
  if constexpr (is_built<T>) {
    const ChannelsLastCopy<const T> source(grad_output, s.batch, s.out_channels, s.output);
    const ChannelsLastCopy<T> result(grad_input, s.batch, s.in_channels, s.input);
    source.fill();
    backward_input(s, source.view(), weight, bias, result.view());
    result.write_back();
  }
}

template <class T>
void im2col_backward_weight([[maybe_unused]] const ConvShape& s,
                            [[maybe_unused]] const ConvTensor<const T>& grad_output,
                            [[maybe_unused]] const ConvTensor<const T>& input,
                            [[maybe_unused]] const ConvTensor<T>& grad_weight) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, BFloat16>) {
    const ChannelsLastCopy<const T> grad(grad_output, s.batch, s.out_channels, s.output);
    const ChannelsLastCopy<const T> source(input, s.batch, s.in_channels, s.input);
    grad.fill();
    source.fill();
    PairWeightGradient(s, grad.view(), source.view()).run(grad_weight);
  }
#endif
}

// An explicit instantiation names every type by hand; this is one of each function.
template <class T>
struct Im2colInstance {
  static constexpr auto forward_function = &im2col_forward<T>;
  static constexpr auto input_function = &im2col_backward_input<T>;
  static constexpr auto weight_function = &im2col_backward_weight<T>;
};
template struct Im2colInstance<float>;
template struct Im2colInstance<BFloat16>;

}  // namespace facula::cpu::FACULA_ISA
