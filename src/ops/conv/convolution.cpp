// Convolutions in one to three dimensions, and transposed ones.
#include "ops/conv/convolution.h"

#include <algorithm>

#include "kernels/cpu/conv/convolution.h"
#include "ops/conv/batch.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/cat.h"
#include "ops/shape/pad.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// One number stands for every spatial dimension.
IntVec expanded(IntSpan list, int64_t spatial, const char* what) {
  if (list.size() == 1) return IntVec(static_cast<size_t>(spatial), list[0]);
  check(static_cast<int64_t>(list.size()) == spatial, "convolution(): ", what,
        " must be one number or ", spatial, ", one for each spatial dimension; got ", str(list));
  return IntVec(list);
}

struct Geometry {
  IntVec stride, padding, dilation, output_padding;
};
Geometry geometry(IntSpan stride, IntSpan padding, IntSpan dilation, IntSpan output_padding,
                  int64_t spatial) {
  Geometry g{expanded(stride, spatial, "stride"), expanded(padding, spatial, "padding"),
             expanded(dilation, spatial, "dilation"),
             expanded(output_padding, spatial, "output_padding")};
  // Positions in an input stay far from the ends of int64.
  for (const IntVec* list : {&g.stride, &g.padding, &g.dilation, &g.output_padding})
    for (int64_t x : *list)
      check(x <= INT32_MAX, "expected strides, paddings and dilations below 2^31; got ", x);
  for (int64_t s : g.stride) check(s > 0, "convolution(): stride must be positive; got ", s);
  for (int64_t p : g.padding) check(p >= 0, "negative padding is not supported");
  for (int64_t d : g.dilation) check(d > 0, "convolution(): dilation must be positive; got ", d);
  return g;
}

void check_operands(const Tensor& input, const Tensor& weight, const Tensor& bias, bool transposed,
                    int64_t groups) {
  const int64_t k = weight.dim();
  check(groups > 0, "convolution(): groups must be positive; got ", groups);
  check(k >= 3 && k <= 5, "convolution(): weight must have 3 to 5 dimensions; got ", k);
  check(input.dim() == k, "convolution(): input must have weight's ", k, " dimensions; got ",
        input.dim());
  check(weight.sizes()[0] >= groups, "convolution(): weight must have at least ", groups,
        " sizes in dimension 0, one for each group; got ", weight.sizes()[0]);
  check(weight.sizes()[0] % groups == 0,
        "convolution(): groups must divide weight's size in dimension 0; got ", groups, " and ",
        weight.sizes()[0]);
  const int64_t channels = transposed ? weight.sizes()[0] : weight.sizes()[1] * groups;
  check(input.sizes()[1] == channels, "convolution(): expected input to have ", channels,
        " channels, by weight and groups; got ", input.sizes()[1]);
  const int64_t results = transposed ? weight.sizes()[1] * groups : weight.sizes()[0];
  check(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == results),
        "convolution(): bias must have shape [", results, "], one for each channel of the result");
  check(input.dtype() == weight.dtype(),
        "convolution(): input and weight must have one dtype; got ", name(input.dtype()), " and ",
        name(weight.dtype()));
  check(!bias.defined() || bias.dtype() == input.dtype(),
        "convolution(): input and bias must have one dtype; got ", name(input.dtype()), " and ",
        name(bias.defined() ? bias.dtype() : input.dtype()));
}

// Kernels divide by how many elements a filter has.
void check_elements(const Tensor& input, const Tensor& weight) {
  const IntSpan kernel = weight.sizes().subspan(2), places = input.sizes().subspan(2);
  check(std::ranges::find(kernel, 0) == kernel.end(),
        "convolution(): kernel size should be greater than zero; got ", str(kernel));
  const bool nothing = input.sizes()[0] == 0 || input.sizes()[1] == 0;
  check(nothing || std::ranges::find(places, 0) == places.end(),
        "convolution(): only batches or channels may be of size zero; got input of shape ",
        str(input.sizes()));
}

IntVec output_sizes(const Tensor& input, const Tensor& weight, const Geometry& g, bool transposed,
                    int64_t groups) {
  check_elements(input, weight);
  IntVec sizes{input.sizes()[0], transposed ? weight.sizes()[1] * groups : weight.sizes()[0]};
  for (int64_t d = 0; d + 2 < input.dim(); ++d) {
    const int64_t n = input.sizes()[d + 2], reach = g.dilation[d] * (weight.sizes()[d + 2] - 1) + 1;
    if (transposed) {
      check(g.output_padding[d] < std::max(g.stride[d], g.dilation[d]),
            "convolution(): output_padding must be smaller than stride or dilation; got "
            "output_padding ",
            str(g.output_padding), ", stride ", str(g.stride), " and dilation ", str(g.dilation));
      sizes.push_back((n - 1) * g.stride[d] - 2 * g.padding[d] + reach + g.output_padding[d]);
      check(sizes.back() >= 0, "convolution(): a size of the result would be negative; got ",
            sizes.back(), " in dimension ", d + 2);
      continue;
    }
    check(n + 2 * g.padding[d] >= reach,
          "convolution(): Kernel size can't be greater than the padded input; got kernel ", reach,
          " and input ", n + 2 * g.padding[d], " in dimension ", d + 2);
    sizes.push_back((n + 2 * g.padding[d] - reach) / g.stride[d] + 1);
  }
  return sizes;
}

// PyTorch's volumes stay channels-last where oneDNN serves them: always bfloat16, single precision
// unless the work is small.
bool keeps_channels_last_3d(const Tensor& input, const Tensor& weight, int64_t groups) {
  const DType d = input.dtype();
  if (d == DType::BFloat16) return true;
  if (d != DType::Float32 && d != DType::Complex64) return false;
  const IntSpan s = input.sizes(), k = weight.sizes();
  return s[0] > 1 || groups > 1 || (k[3] > 3 && k[4] > 3) || s[0] * s[1] * s[2] * s[3] > 20480;
}

MemoryFormat format_of(const Tensor& input, const Tensor& weight, int64_t groups) {
  if (input.dim() == 5 && !keeps_channels_last_3d(input, weight, groups))
    return MemoryFormat::Contiguous;
  const MemoryFormat f = suggested_format(input);
  return f == MemoryFormat::Contiguous ? suggested_format(weight) : f;
}

// Transposed and dilated convolutions of integers take int64 alone.
void check_integers(DType d, bool transposed, const IntVec& dilation) {
  if (!is_integral(d, false) || d == DType::Int64) return;
  const bool dilated = std::ranges::any_of(dilation, [](int64_t x) { return x != 1; });
  check_kind(ErrorKind::NotImplemented, !transposed && !dilated,
             transposed ? "\"slow_conv_transpose" : "\"slow_conv_dilated",
             "\" not implemented for '", info(d).legacy_name, "'");
}

void meta_convolution(Meta& m, const Tensor& input, const Tensor& weight, const Tensor& bias,
                      IntSpan stride, IntSpan padding, IntSpan dilation, bool transposed,
                      IntSpan output_padding, int64_t groups) {
  check_operands(input, weight, bias, transposed, groups);
  const Geometry g = geometry(stride, padding, dilation, output_padding, weight.dim() - 2);
  check_integers(input.dtype(), transposed, g.dilation);
  m.result_format(0, output_sizes(input, weight, g, transposed, groups), input.dtype(),
                  format_of(input, weight, groups));
}

void meta_convolution_backward(Meta& m, const Tensor& grad_output, const Tensor& input,
                               const Tensor& weight, std::optional<IntSpan>, IntSpan stride,
                               IntSpan padding, IntSpan dilation, bool transposed,
                               IntSpan output_padding, int64_t groups, std::span<const bool> mask) {
  check_operands(input, weight, Tensor(), transposed, groups);
  const Geometry g = geometry(stride, padding, dilation, output_padding, weight.dim() - 2);
  const IntVec wanted = output_sizes(input, weight, g, transposed, groups);
  check(same_sizes(grad_output.sizes(), wanted),
        "convolution_backward(): expected grad_output of sizes ", str(wanted), "; got ",
        str(grad_output.sizes()));
  check(grad_output.dtype() == input.dtype(),
        "convolution_backward(): expected grad_output of dtype ", name(input.dtype()), "; got ",
        name(grad_output.dtype()));
  check(mask.size() == 3, "convolution_backward(): expected output_mask of 3 elements; got ",
        mask.size());
  const MemoryFormat f =
      is_complex(input.dtype()) ? MemoryFormat::Contiguous : format_of(input, weight, groups);
  if (mask[0]) m.result_format(0, input.sizes(), input.dtype(), f);
  if (mask[1]) m.result_format(1, weight.sizes(), weight.dtype(), f);
  if (mask[2]) m.result(2, IntList{grad_output.sizes()[1]}, grad_output.dtype());
}

// --- derivatives

struct Call {
  IntVec stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};
Call call_of(const Backward& b) {
  return {IntVec(b.ints("stride")),         IntVec(b.ints("padding")), IntVec(b.ints("dilation")),
          IntVec(b.ints("output_padding")), b.flag("transposed"),      b.integer("groups")};
}
Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias, const Call& c) {
  return ops::convolution(input, weight, bias, c.stride, c.padding, c.dilation, c.transposed,
                          c.output_padding, c.groups);
}
std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& input,
                                            const Tensor& weight, const Call& c, bool x, bool w,
                                            bool bias) {
  const bool mask[] = {x, w, bias};
  const IntVec bias_sizes{grad.sizes()[1]};
  return ops::convolution_backward(grad, input, weight, std::optional<IntList>(bias_sizes),
                                   c.stride, c.padding, c.dilation, c.transposed, c.output_padding,
                                   c.groups, mask);
}
Tensor conjugate(const Tensor& t) {
  return is_complex(t.dtype()) ? ops::resolve_conj(ops::conj(t)) : t;
}

void convolution_gradients(Backward& b) {
  if (!b.grad().defined()) return;
  const auto [x, w, bias] =
      backward(b.grad(), conjugate(b["input"]), conjugate(b["weight"]), call_of(b),
               b.needs("input"), b.needs("weight"), b.needs("bias"));
  b.set("input", x);
  b.set("weight", w);
  b.set("bias", bias);
}

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? ops::add(a, b) : a;
}

// Each result of the backward operator is bilinear in its arguments.
void double_backward(Backward& b) {
  const Call c = call_of(b);
  const Tensor go = conjugate(b["grad_output"]), x = conjugate(b["input"]),
               w = conjugate(b["weight"]);
  const Tensor& gx = b.grad(0);
  const Tensor& gw = b.grad(1);
  const Tensor& gb = b.grad(2);
  if (b.needs("grad_output")) {
    Tensor g;
    if (gx.defined()) g = forward(gx, w, Tensor(), c);
    if (gw.defined()) g = plus(g, forward(x, gw, Tensor(), c));
    if (gb.defined()) {
      IntVec shape(static_cast<size_t>(go.dim()), 1);
      shape[1] = gb.sizes()[0];
      g = plus(g, ops::expand(ops::reshape(gb, shape), go.sizes()));
    }
    b.set("grad_output", g);
  }
  if (b.needs("input") && gw.defined())
    b.set("input", std::get<0>(backward(go, x, gw, c, true, false, false)));
  if (b.needs("weight") && gx.defined())
    b.set("weight", std::get<1>(backward(go, gx, w, c, false, true, false)));
}

// --- the functions that users call

Tensor with_batch(const Tensor& input, int64_t spatial, bool& added, const char* op) {
  check(input.dim() == spatial + 1 || input.dim() == spatial + 2, op, "(): input must have ",
        spatial + 1, " dimensions, or ", spatial + 2, " with a batch; got ", input.dim());
  added = input.dim() == spatial + 1;
  return added ? ops::unsqueeze(input, 0) : input;
}

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                IntSpan padding, IntSpan dilation, bool transposed, IntSpan output_padding,
                int64_t groups, int64_t spatial, const char* op) {
  bool added = false;
  const Tensor x = with_batch(input, spatial, added, op);
  const Tensor y = ops::convolution(x, weight, bias, stride, padding, dilation, transposed,
                                    output_padding, groups);
  return added ? ops::squeeze(y, 0) : y;
}

constexpr int64_t zero_list[] = {0, 0, 0};

template <int spatial>
Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
            IntSpan padding, IntSpan dilation, int64_t groups) {
  static constexpr const char* names[] = {"", "conv1d", "conv2d", "conv3d"};
  return convolve(input, weight, bias, stride, padding, dilation, false,
                  IntSpan(zero_list, spatial), groups, spatial, names[spatial]);
}

template <int spatial>
Tensor conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      IntSpan padding, IntSpan output_padding, int64_t groups, IntSpan dilation) {
  static constexpr const char* names[] = {"", "conv_transpose1d", "conv_transpose2d",
                                          "conv_transpose3d"};
  return convolve(input, weight, bias, stride, padding, dilation, true, output_padding, groups,
                  spatial, names[spatial]);
}

// padding="same": as much on both sides as keeps the size; an odd rest goes to the end.
template <int spatial>
Tensor conv_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                    std::string_view padding, IntSpan dilation, int64_t groups) {
  if (padding == "valid")
    return conv<spatial>(input, weight, bias, stride, IntSpan(zero_list, spatial), dilation,
                         groups);
  check(padding == "same", "Invalid padding string: '", padding, "'");
  for (int64_t s : stride) check(s == 1, "conv(): padding='same' needs stride 1; got ", s);
  const IntVec step = expanded(dilation, spatial, "dilation");
  IntVec even(spatial), odd(static_cast<size_t>(2 * spatial), 0);  // odd: last dimension first
  bool symmetric = true;
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t total = step[d] * (weight.size(d - spatial) - 1);
    even[d] = total / 2;
    odd[2 * (spatial - 1 - d) + 1] = total % 2;
    symmetric &= total % 2 == 0;
  }
  const Tensor padded = symmetric ? input : ops::constant_pad_nd(input, odd, 0);
  return conv<spatial>(padded, weight, bias, stride, even, dilation, groups);
}

Tensor _convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                    IntSpan padding, IntSpan dilation, bool transposed, IntSpan output_padding,
                    int64_t groups, bool, bool, bool, bool) {
  return ops::convolution(input, weight, bias, stride, padding, dilation, transposed,
                          output_padding, groups);
}

Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  check(self.dim() == 3 && weight.dim() == 3 && bias.dim() == 1,
        "conv_tbc(): expected input and weight with 3 dimensions and bias with 1; got ",
        str(self.sizes()), ", ", str(weight.sizes()), " and ", str(bias.sizes()));
  // Steps in time times batch are the rows of one matrix: input that is no such matrix is refused.
  const Tensor rows = ops::view(self, {self.sizes()[0] * self.sizes()[1], self.sizes()[2]});
  const Tensor x = ops::view(rows, self.sizes());
  const Tensor y = ops::conv1d(ops::permute(x, {1, 2, 0}), ops::permute(weight, {2, 1, 0}), bias,
                               IntList{1}, IntList{pad});
  return ops::contiguous(ops::permute(y, {2, 0, 1}));
}
void conv_tbc_gradients(Backward& b) {
  if (!b.grad().defined()) return;
  const Tensor x = ops::permute(conjugate(b["self"]), {1, 2, 0}),
               w = ops::permute(conjugate(b["weight"]), {2, 1, 0});
  const Call c{{1}, {b.integer("pad")}, {1}, {0}, false, 1};
  const auto [gx, gw, gb] = backward(ops::permute(b.grad(), {1, 2, 0}), x, w, c, b.needs("self"),
                                     b.needs("weight"), b.needs("bias"));
  if (gx.defined()) b.set("self", ops::permute(gx, {2, 0, 1}));
  if (gw.defined()) b.set("weight", ops::permute(gw, {2, 1, 0}));
  b.set("bias", gb);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(convolution){
    .schema =
        "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
        "SymInt[] dilation, "
        "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    .doc =
        "Convolution of input (batch, channels, ...) with weight, in one to three dimensions, or "
        "its transpose.",
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_convolution>,
    .cpu = cpu::convolution_kernel,
    .derivatives = {vjp(names("input", "weight", "bias"), convolution_gradients,
                        saves("input", "weight"))},
    .batch = batch::convolution,
};
OP(convolution_backward){
    .schema =
        "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? "
        "bias_sizes, SymInt[] stride, "
        "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt "
        "groups, "
        "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .doc = "Gradients of convolution by input, weight and bias; the mask says which are wanted.",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_convolution_backward>,
    .cpu = cpu::convolution_backward_kernel,
    .derivatives = {vjp(names("grad_output", "input", "weight"), double_backward,
                        saves("grad_output", "input", "weight"))},
    .batch = batch::convolution_backward,
};
OP(_convolution){
    .schema =
        "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
        "padding, SymInt[] dilation, "
        "bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool "
        "deterministic, bool cudnn_enabled, "
        "bool allow_tf32) -> Tensor",
    .doc =
        "As convolution; the last arguments choose among other libraries' algorithms and do "
        "nothing here.",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<_convolution>,
};
OP(conv1d){
    .schema =
        "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] "
        "padding=0, "
        "SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
    .doc = "Convolution of (batch, channels, length).",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv<1>>,
};
OP(conv2d){
    .schema =
        "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "
        "padding=0, "
        "SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
    .doc = "Convolution of (batch, channels, height, width).",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv<2>>,
};
OP(conv3d){
    .schema =
        "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] "
        "padding=0, "
        "SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
    .doc = "Convolution of (batch, channels, depth, height, width).",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv<3>>,
};
OP(conv1d_padding){
    .schema =
        "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str "
        "padding='valid', "
        "SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
    .doc = "Convolution with padding 'valid' or \"same\".",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv_padding<1>>,
};
OP(conv2d_padding){
    .schema =
        "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str "
        "padding='valid', "
        "SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
    .doc = "Convolution with padding 'valid' or \"same\".",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv_padding<2>>,
};
OP(conv3d_padding){
    .schema =
        "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str "
        "padding='valid', "
        "SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
    .doc = "Convolution with padding 'valid' or \"same\".",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv_padding<3>>,
};
OP(conv_transpose1d){
    .schema =
        "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, "
        "SymInt[1] padding=0, "
        "SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor",
    .doc = "Transpose of conv1d.",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv_transpose<1>>,
};
OP(conv_transpose2d_input){
    .schema =
        "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] "
        "stride=1, SymInt[2] padding=0, "
        "SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor",
    .doc = "Transpose of conv2d.",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv_transpose<2>>,
};
OP(conv_transpose3d_input){
    .schema =
        "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] "
        "stride=1, SymInt[3] padding=0, "
        "SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor",
    .doc = "Transpose of conv3d.",
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv_transpose<3>>,
};
OP(conv_tbc){
    .schema = "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    .doc = "Convolution of (time, batch, channels) with weight (time, in, out).",
    .forms = function_method,
    .composite = Composite::Explicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<conv_tbc>,
    .derivatives = {vjp(names("self", "weight", "bias"), conv_tbc_gradients,
                        saves("self", "weight"))},
};
