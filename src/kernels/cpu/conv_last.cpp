#include "kernels/cpu/conv_last.h"

#include "kernels/cpu/conv_last_sum.h"
#include "kernels/cpu/conv_layout.h"
#include "kernels/cpu/conv_pair_gradient.h"

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
inline constexpr bool kBuilt = std::is_same_v<typename ProductsOf<T>::type::Element, T>;

// Rows too few for the lanes, and groups of few channels, are better off elsewhere.
bool fills_lanes(int64_t rows, int64_t groups, int64_t grouped) {
  return rows >= (groups == 1 ? 8 : grouped);
}

// Whether `channels` of the source are worth a copy channels-last: positions that are steps apart
// fill vectors badly, and a pointwise product reads every element but once.
bool worth_copying(const ConvShape& s, int64_t channels) {
  const bool strided = s.stride[0] * s.stride[1] * s.stride[2] != 1;
  return channels >= 16 && (strided || volume(s.kernel) == 1);
}

template <class T>
bool suits(const ConvShape& s, const ConvTensor<const T>& source, int64_t channels, int64_t rows) {
  if (channels == 0) return false;
  const int64_t grouped = channels / s.groups, result = rows / s.groups;
  if constexpr (std::is_same_v<T, BFloat16>)
    return has_pair_products() && fills_lanes(result, s.groups, 16);
  return fills_lanes(result, s.groups, 32) && (source.strides[1] == 1 || worth_copying(s, grouped));
}

template <class T>
void run_sum(const Unfold<T>& unfold, const TapWeights<T>& weights, const ConvTensor<T>& result,
             const T* bias, const ConvShape& s, int64_t rows) {
  LastResult<T> to{result.data, {}, bias};
  __builtin_memcpy(to.strides, result.strides, sizeof to.strides);
  LastSum<typename ProductsOf<T>::type>(unfold, weights, to, s.batch, s.groups, rows).run();
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
  run_sum(taps.unfold(), {weight.data, rows * st[0], st[0], st[1], places.get()}, output, bias, s,
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
  Unfold<T> unfold{grad.data, {}, channels, {}};
  __builtin_memcpy(unfold.strides, grad.strides, sizeof unfold.strides);
  for (int d = 0; d < 3; ++d) {
    unfold.lines[d] = taps.lines()[d];
    result.data += phase[d] * result.strides[d + 2];
    result.strides[d + 2] *= s.stride[d];
  }
  if (unfold.places() == 0) return;
  const int64_t* st = weight.strides;
  run_sum(unfold, {weight.data, channels * st[0], st[1], st[0], taps.places()}, result, bias, s,
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

}  // namespace

template <class T>
bool unfolded_forward(const ConvShape& s, const ConvTensor<const T>& input,
                      const ConvTensor<const T>& weight, const T* bias,
                      const ConvTensor<T>& output) {
  if (!suits(s, input, s.in_channels, s.out_channels)) return false;
  if constexpr (kBuilt<T>) {
    const ChannelsLast<const T> source(input, s.batch, s.in_channels, s.input);
    const ChannelsLast<T> result(output, s.batch, s.out_channels, s.output);
    source.fill();
    forward(s, source.view(), weight, bias, result.view());
    result.write_back();
  }
  return true;
}

template <class T>
bool unfolded_backward_input(const ConvShape& s, const ConvTensor<const T>& grad_output,
                             const ConvTensor<const T>& weight, const T* bias,
                             const ConvTensor<T>& grad_input) {
  if (!suits(s, grad_output, s.out_channels, s.in_channels)) return false;
  if constexpr (kBuilt<T>) {
    const ChannelsLast<const T> source(grad_output, s.batch, s.out_channels, s.output);
    const ChannelsLast<T> result(grad_input, s.batch, s.in_channels, s.input);
    source.fill();
    backward_input(s, source.view(), weight, bias, result.view());
    result.write_back();
  }
  return true;
}

template <class T>
bool unfolded_backward_weight([[maybe_unused]] const ConvShape& s,
                              [[maybe_unused]] const ConvTensor<const T>& grad_output,
                              [[maybe_unused]] const ConvTensor<const T>& input,
                              [[maybe_unused]] const ConvTensor<T>& grad_weight) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, BFloat16>) {
    const int64_t length = s.in_channels * volume(s.kernel);
    if (!suits(s, grad_output, s.out_channels, length)) return false;
    const ChannelsLast<const T> grad(grad_output, s.batch, s.out_channels, s.output);
    const ChannelsLast<const T> source(input, s.batch, s.in_channels, s.input);
    grad.fill();
    source.fill();
    PairWeightGradient(s, grad.view(), source.view()).run(grad_weight);
    return true;
  }
#endif
  return false;
}

// An explicit instantiation names every type by hand; this is one of each function.
template <class T>
struct UnfoldedInstance {
  static constexpr auto forward_function = &unfolded_forward<T>;
  static constexpr auto input_function = &unfolded_backward_input<T>;
  static constexpr auto weight_function = &unfolded_backward_weight<T>;
};
template struct UnfoldedInstance<float>;
template struct UnfoldedInstance<BFloat16>;

}  // namespace facula::cpu::FACULA_ISA
