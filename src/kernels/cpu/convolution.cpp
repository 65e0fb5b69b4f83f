#include "kernels/cpu/convolution.h"

#include "kernels/cpu/conv_core.h"
#include "kernels/cpu/conv_depthwise.h"
#include "kernels/cpu/conv_repair.h"
#include "kernels/cpu/convert.h"

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
  const bool known = visit_floating(d, f) || visit_complex(d, f) || visit_integral(d, f);
  if (!known)
    throw_error(ErrorKind::NotImplemented,
                concat("\"convolution\" not implemented for '", info(d).legacy_name, "'"));
}

// Depthwise convolutions over channels-last memory have loops of their own.
bool depthwise(const ConvShape& s, const Tensor& input, const Tensor& weight, const Tensor& bias,
               bool transposed, const Tensor& out) {
  bool done = false;
  if (out.numel() == 0 || input.numel() == 0) return done;
  visit_types<float, double>(out.dtype(), [&]<class T>(Type<T>) {
    const T* b = bias.defined() ? bias.data<T>() : nullptr;
    const auto run = transposed ? &depthwise_backward_input<T> : &depthwise_forward<T>;
    done =
        run(s, conv_tensor<const T>(input), conv_tensor<const T>(weight), b, conv_tensor<T>(out));
  });
  return done;
}

bool depthwise_weight(const ConvShape& s, const Tensor& of_output, const Tensor& of_input,
                      const Tensor& grad_weight) {
  bool done = false;
  if (of_output.numel() == 0 || of_input.numel() == 0) return done;
  visit_types<float, double>(grad_weight.dtype(), [&]<class T>(Type<T>) {
    done =
        depthwise_backward_weight<T>(s, conv_tensor<const T>(of_output),
                                     conv_tensor<const T>(of_input), conv_tensor<T>(grad_weight));
  });
  return done;
}

template <class T>
inline constexpr bool kHasInfinity = !is_complex_v<T> && !std::is_integral_v<T>;

// Each repairs, too, what was done already.
template <class T>
void forward(const ConvShape& s, const ConvTensor<const T>& x, const ConvTensor<const T>& w,
             const T* bias, const ConvTensor<T>& out, bool done) {
  if (!done) conv_forward<T>(s, x, w, bias, out);
  if constexpr (kHasInfinity<T>) repair_convolution(s, x, w, bias, out);
}

template <class T>
void backward_input(const ConvShape& s, const ConvTensor<const T>& grad,
                    const ConvTensor<const T>& w, const T* bias, const ConvTensor<T>& out,
                    bool done) {
  if (!done) conv_backward_input<T>(s, grad, w, bias, out);
  if constexpr (kHasInfinity<T>) repair_input_gradient(s, grad, w, bias, out);
}

}  // namespace

void convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                 IntSpan padding, IntSpan dilation, bool transposed, IntSpan, int64_t groups,
                 const Tensor& out) {
  const ConvShape s = conv_shape(input, out, weight, stride, padding, dilation, transposed, groups);
  const Tensor dense_bias = bias.defined() ? cpu::contiguous(bias) : bias;
  const bool done = depthwise(s, input, weight, dense_bias, transposed, out);
  visit(out.dtype(), [&]<class T>(Type<T>) {
    const T* b = dense_bias.defined() ? dense_bias.data<T>() : nullptr;
    const auto x = conv_tensor<const T>(input), w = conv_tensor<const T>(weight);
    const auto run = transposed ? &backward_input<T> : &forward<T>;
    run(s, x, w, b, conv_tensor<T>(out), done);
  });
}

void convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                          IntSpan, IntSpan stride, IntSpan padding, IntSpan dilation,
                          bool transposed, IntSpan, int64_t groups, std::span<const bool>,
                          const Tensor& grad_input, const Tensor& grad_weight,
                          const Tensor& grad_bias) {
  const ConvShape s =
      conv_shape(input, grad_output, weight, stride, padding, dilation, transposed, groups);
  const bool input_done =
      grad_input.defined() && depthwise(s, grad_output, weight, {}, !transposed, grad_input);
  const bool weight_done =
      grad_weight.defined() && depthwise_weight(s, transposed ? input : grad_output,
                                                transposed ? grad_output : input, grad_weight);
  visit(grad_output.dtype(), [&]<class T>(Type<T>) {
    const auto go = conv_tensor<const T>(grad_output), x = conv_tensor<const T>(input),
               w = conv_tensor<const T>(weight);
    if (grad_input.defined()) {
      const auto run = transposed ? &forward<T> : &backward_input<T>;
      run(s, go, w, nullptr, conv_tensor<T>(grad_input), input_done);
    }
    if (grad_weight.defined() && !weight_done && transposed)
      conv_backward_weight<T>(s, x, go, conv_tensor<T>(grad_weight));
    if (grad_weight.defined() && !weight_done && !transposed)
      conv_backward_weight<T>(s, go, x, conv_tensor<T>(grad_weight));
    if constexpr (kHasInfinity<T>) {
      if (grad_weight.defined())
        repair_weight_gradient(s, transposed ? x : go, transposed ? go : x,
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
