#include "kernels/cpu/conv/convolution.h"

#include "kernels/cpu/conv/core.h"
#include "kernels/cpu/conv/nonfinite.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// A tensor of 3 to 5 dimensions, seen with three spatial ones.
template <class T>
ConvTensor<T> conv_tensor(const Tensor& t) {
  ConvTensor<T> c{};
  c.data = t.defined() ? t.data<std::remove_const_t<T>>() : nullptr;
  if (!t.defined()) return c;
  const int64_t spatial = t.dim() - 2;
  c.strides[0] = t.strides()[0];
  c.strides[1] = t.strides()[1];
  for (int64_t d = 0; d < spatial; ++d) c.strides[5 - spatial + d] = t.strides()[2 + d];
  return c;
}

// One number may stand for every dimension.
int64_t at(IntSpan list, int64_t d) { return list.size() == 1 ? list[0] : list[d]; }

// The shape of the convolution whose input is `input` and whose result is `output`; of a
// transposed one, the roles are exchanged.
ConvShape conv_shape(const Tensor& input, const Tensor& output, const Tensor& weight,
                     IntSpan stride, IntSpan padding, IntSpan dilation, bool transposed,
                     int64_t groups) {
  const Tensor& in = transposed ? output : input;
  const Tensor& out = transposed ? input : output;
  ConvShape s;
  s.batch = in.sizes()[0];
  s.groups = groups;
  s.in_channels = in.sizes()[1];
  s.out_channels = out.sizes()[1];
  const int64_t spatial = in.dim() - 2;
  for (int k = 0; k < 3; ++k) {
    const int64_t d = k - (3 - spatial);
    s.input[k] = d < 0 ? 1 : in.sizes()[2 + d];
    s.output[k] = d < 0 ? 1 : out.sizes()[2 + d];
    s.kernel[k] = d < 0 ? 1 : weight.sizes()[2 + d];
    s.stride[k] = d < 0 ? 1 : at(stride, d);
    s.padding[k] = d < 0 ? 0 : at(padding, d);
    s.dilation[k] = d < 0 ? 1 : at(dilation, d);
  }
  return s;
}

template <class F>
void visit(DType d, F&& f) {
  dispatch<FloatingTypes, ComplexTypes, IntegralTypes>(d, "convolution", f);
}

template <class T>
inline constexpr bool holds_infinity = !is_complex_v<T> && !std::is_integral_v<T>;

template <class T>
void forward(const ConvShape& s, const ConvTensor<const T>& x, const ConvTensor<const T>& w,
             const T* bias, const ConvTensor<T>& out) {
  conv_forward<T>(s, x, w, bias, out);
  if constexpr (holds_infinity<T>) recompute_nonfinite_output(s, x, w, bias, out);
}

template <class T>
void backward_input(const ConvShape& s, const ConvTensor<const T>& grad,
                    const ConvTensor<const T>& w, const T* bias, const ConvTensor<T>& out) {
  conv_backward_input<T>(s, grad, w, bias, out);
  if constexpr (holds_infinity<T>) recompute_nonfinite_input_gradient(s, grad, w, bias, out);
}

}  // namespace

void convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                 IntSpan padding, IntSpan dilation, bool transposed, IntSpan, int64_t groups,
                 const Tensor& out) {
  const ConvShape s = conv_shape(input, out, weight, stride, padding, dilation, transposed, groups);
  const Tensor dense_bias = bias.defined() ? cpu::contiguous(bias) : bias;
  visit(out.dtype(), [&]<class T>(Type<T>) {
    const T* b = dense_bias.defined() ? dense_bias.data<T>() : nullptr;
    const auto x = conv_tensor<const T>(input), w = conv_tensor<const T>(weight);
    const auto run = transposed ? &backward_input<T> : &forward<T>;
    run(s, x, w, b, conv_tensor<T>(out));
  });
}

void convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                          IntSpan, IntSpan stride, IntSpan padding, IntSpan dilation,
                          bool transposed, IntSpan, int64_t groups, std::span<const bool>,
                          const Tensor& grad_input, const Tensor& grad_weight,
                          const Tensor& grad_bias) {
  const ConvShape s =
      conv_shape(input, grad_output, weight, stride, padding, dilation, transposed, groups);
  visit(grad_output.dtype(), [&]<class T>(Type<T>) {
    const auto go = conv_tensor<const T>(grad_output), x = conv_tensor<const T>(input),
               w = conv_tensor<const T>(weight);
    if (grad_input.defined()) {
      const auto run = transposed ? &forward<T> : &backward_input<T>;
      run(s, go, w, nullptr, conv_tensor<T>(grad_input));
    }
    if (grad_weight.defined() && transposed)
      conv_backward_weight<T>(s, x, go, conv_tensor<T>(grad_weight));
    if (grad_weight.defined() && !transposed)
      conv_backward_weight<T>(s, go, x, conv_tensor<T>(grad_weight));
    if constexpr (holds_infinity<T>) {
      if (grad_weight.defined())
        recompute_nonfinite_weight_gradient(s, transposed ? x : go, transposed ? go : x,
                                            conv_tensor<T>(grad_weight));
    }
    if (!grad_bias.defined()) return;
    ConvShape sums = s;  // only batch, channels and positions of the gradient matter
    sums.out_channels = grad_output.sizes()[1];
    for (int k = 0; transposed && k < 3; ++k) sums.output[k] = s.input[k];
    conv_backward_bias<T>(sums, go, grad_bias.data<T>());
  });
}

}  // namespace facula::cpu::FACULA_ISA
