// Layer, RMS and group normalisation.
#include "ops/norm/norm.h"
#include "ops/norm/tangents.h"

#include <limits>

#include "core/checked.h"
#include "kernels/cpu/norm/norm.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/powers.h"
#include "ops/meta_rules.h"
#include "ops/norm/batch.h"
#include "ops/norm/second_derivatives.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// float32 parameters may stand beside half inputs; statistics then are float32 too.
DType parameter_dtype(DType input, std::initializer_list<const Tensor*> parameters) {
  for (const Tensor* p : parameters) {
    if (!p->defined() || p->dtype() == input) continue;
    check(is_reduced_float(input) && p->dtype() == DType::Float32,
          "norm: parameters must have input's dtype, or float32 for a half input; got ",
          name(p->dtype()), " for input ", name(input));
    return DType::Float32;
  }
  return input;
}

// --- layer norm

void check_normalized(const Tensor& input, IntSpan shape, const Tensor& weight,
                      const Tensor& bias) {
  check(!shape.empty(), "norm: normalized_shape must have a dimension; got ", str(shape));
  auto fits = [&](const Tensor& t, const char* name) {
    check(!t.defined() || same_sizes(t.sizes(), shape), "norm: ", name,
          " must have shape normalized_shape, ", str(shape), "; got ",
          str(t.defined() ? t.sizes() : IntSpan()));
  };
  fits(weight, "weight");
  fits(bias, "bias");
  const size_t ndim = static_cast<size_t>(input.dim());
  if (ndim >= shape.size() && same_sizes(input.sizes().last(shape.size()), shape)) return;
  throw Error(ErrorKind::Runtime, "norm: input's shape must end in normalized_shape, ", str(shape),
              "; got ", str(input.sizes()));
}

// Sizes of the statistics: those of input with the normalised dimensions at one.
IntVec statistics_sizes(const Tensor& input, IntSpan shape) {
  IntVec sizes(input.sizes());
  for (size_t d = sizes.size() - shape.size(); d < sizes.size(); ++d) sizes[d] = 1;
  return sizes;
}

// Kernels read one element of saved statistics for each row that is normalised.
void check_statistics(const Meta& m, const Tensor& t, const Tensor& input, IntSpan shape,
                      const char* name) {
  const IntVec expected = statistics_sizes(input, shape);
  check(t.numel() == checked_product(expected, "norm: the statistics' size"), m.op_name(),
        "(): expected ", name, " of shape ", str(expected), "; got ", str(t.sizes()));
}

void meta_layer_norm(Meta& m, const Tensor& input, IntSpan shape, const Tensor& weight,
                     const Tensor& bias) {
  check_normalized(input, shape, weight, bias);
  const DType d = parameter_dtype(input.dtype(), {&weight, &bias});
  m.result(0, input.sizes(), input.dtype());
  m.result(1, statistics_sizes(input, shape), d);
  m.result(2, statistics_sizes(input, shape), d);
}

void meta_layer_norm_backward(Meta& m, const Tensor& grad, const Tensor& input, IntSpan shape,
                              const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                              const Tensor& bias, std::span<const bool> mask) {
  check_normalized(input, shape, weight, bias);
  check_statistics(m, mean, input, shape, "mean");
  check_statistics(m, rstd, input, shape, "rstd");
  check(same_sizes(grad.sizes(), input.sizes()), m.op_name(), "(): expected grad_out of shape ",
        str(input.sizes()), "; got ", str(grad.sizes()));
  if (mask[0]) m.result(0, input.sizes(), input.dtype());
  if (mask[1]) m.result(1, shape, weight.defined() ? weight.dtype() : input.dtype());
  if (mask[2]) m.result(2, shape, bias.defined() ? bias.dtype() : input.dtype());
}

Tensor layer_norm(const Tensor& input, IntSpan shape, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  return std::get<0>(ops::native_layer_norm(input, shape, weight, bias, eps));
}

void layer_norm_gradient(Backward& b) {
  const bool mask[] = {b.needs("input"), b.needs("weight"), b.needs("bias")};
  auto [input, weight, bias] =
      ops::native_layer_norm_backward(b.grad(), b["input"], b.ints("normalized_shape"), b.result(1),
                                      b.result(2), b["weight"], b["bias"], mask);
  b.set("input", input);
  b.set("weight", weight);
  b.set("bias", bias);
}

// --- RMS norm

void meta_rms_norm(Meta& m, const Tensor& input, IntSpan shape, const Tensor& weight) {
  check_normalized(input, shape, weight, {});
  m.result(0, input.sizes(), input.dtype());
  m.result(1, statistics_sizes(input, shape), compute_of(input.dtype()));
}
void meta_rms_norm_backward(Meta& m, const Tensor& grad, const Tensor& input, IntSpan shape,
                            const Tensor& rstd, const Tensor& weight, std::span<const bool> mask) {
  check_normalized(input, shape, weight, {});
  check_statistics(m, rstd, input, shape, "rstd");
  check(same_sizes(grad.sizes(), input.sizes()), m.op_name(), "(): expected grad_out of shape ",
        str(input.sizes()), "; got ", str(grad.sizes()));
  if (mask[0]) m.result(0, input.sizes(), input.dtype());
  if (mask[1]) m.result(1, shape, weight.defined() ? weight.dtype() : input.dtype());
}

// Squares are not of magnitudes: PyTorch's rule for complex numbers.
Tensor complex_rms_norm(const Tensor& input, IntSpan shape, const Tensor& weight,
                        std::optional<double> eps) {
  check_normalized(input, shape, weight, {});
  IntVec over;
  for (size_t d = 0; d < shape.size(); ++d) over.push_back(-1 - static_cast<int64_t>(d));
  const double tiny = input.dtype() == DType::Complex64 ? std::numeric_limits<float>::epsilon()
                                                        : std::numeric_limits<double>::epsilon();
  const Tensor square = ops::mean(ops::pow(input, 2), std::optional<IntList>(over), true);
  const Tensor y = ops::mul(input, ops::rsqrt(ops::add(square, eps.value_or(tiny))));
  return weight.defined() ? ops::mul(y, weight) : y;
}

Tensor rms_norm(const Tensor& input, IntSpan shape, const Tensor& weight,
                std::optional<double> eps) {
  if (input.dtype() == DType::Complex64 || input.dtype() == DType::Complex128)
    return complex_rms_norm(input, shape, weight, eps);
  return std::get<0>(ops::_fused_rms_norm(input, shape, weight, eps));
}

void rms_norm_gradient(Backward& b) {
  const bool mask[] = {b.needs("input"), b.needs("weight")};
  auto [input, weight] = ops::_fused_rms_norm_backward(
      b.grad(), b["input"], b.ints("normalized_shape"), b.result(1), b["weight"], mask);
  b.set("input", input);
  b.set("weight", weight);
}

IntVec last_dims(IntSpan shape) {
  IntVec dims;
  for (size_t d = 0; d < shape.size(); ++d) dims.push_back(-1 - static_cast<int64_t>(d));
  return dims;
}
void set_second(Backward& b, const SecondOrder& s) {
  if (b.needs("grad_out")) b.set("grad_out", s.grad_out);
  if (b.needs("input")) b.set("input", s.input);
  if (b.needs("weight")) b.set("weight", s.weight);
}
void layer_norm_second(Backward& b) {
  const Tensor rstd = b["rstd"];
  const Normalized n{ops::mul(ops::sub(b["input"], b["mean"]), rstd), rstd,
                     last_dims(b.ints("normalized_shape"))};
  set_second(b, second_order(n, b["grad_out"], b["weight"], b.grad(0), b.grad(1), b.grad(2)));
}
void rms_norm_second(Backward& b) {
  const Tensor rstd = b["rstd"];
  const Normalized n{ops::mul(b["input"], rstd), rstd, last_dims(b.ints("normalized_shape")),
                     false};
  set_second(b, second_order(n, b["grad_out"], b["weight"], b.grad(0), b.grad(1), {}));
}

// --- group norm

void check_groups(const Tensor& weight, const Tensor& bias, int64_t n, int64_t c, int64_t hxw,
                  int64_t group, const Tensor& input) {
  check(hxw > 0, "group_norm(): channels must have elements; got ", hxw);
  check(c > 0, "group_norm(): input must have channels; got ", c);
  check(group > 0, "group_norm(): num_groups must be positive; got ", group);
  check(c % group == 0, "group_norm(): num_groups must divide the number of channels; got input ",
        str(input.sizes()), " and num_groups ", group);
  auto fits = [&](const Tensor& t, const char* name) {
    check(!t.defined() || (t.dim() == 1 && t.numel() == c), "group_norm(): ", name,
          " must have shape [", c, "], one for each channel; got ",
          str(t.defined() ? t.sizes() : IntSpan()));
  };
  fits(weight, "weight");
  fits(bias, "bias");
  check(n >= 0 && hxw >= 0, "native_group_norm(): N and HxW must not be negative; got ", n, " and ",
        hxw);
  const int64_t elements = checked_product(IntList{n, c, hxw}, "native_group_norm(): N * C * HxW");
  check(input.numel() == elements,
        "native_group_norm(): expected an input of N * C * HxW = ", elements,
        " elements; got shape ", str(input.sizes()));
}

void meta_group_norm(Meta& m, const Tensor& input, const Tensor& weight, const Tensor& bias,
                     int64_t n, int64_t c, int64_t hxw, int64_t group) {
  check_groups(weight, bias, n, c, hxw, group, input);
  const DType d = parameter_dtype(input.dtype(), {&weight, &bias});
  m.result_format(0, input.sizes(), input.dtype(), suggested_format(input));
  m.result(1, IntVec{n, group}, d);
  m.result(2, IntVec{n, group}, d);
}

void meta_group_norm_backward(Meta& m, const Tensor& grad, const Tensor& input, const Tensor& mean,
                              const Tensor& rstd, const Tensor& weight, int64_t n, int64_t c,
                              int64_t hxw, int64_t group, std::span<const bool> mask) {
  check_groups(weight, {}, n, c, hxw, group, input);
  check(same_sizes(grad.sizes(), input.sizes()), m.op_name(), "(): expected grad_out of shape ",
        str(input.sizes()), "; got ", str(grad.sizes()));
  check(mean.numel() == n * group && rstd.numel() == n * group, m.op_name(),
        "(): expected mean and rstd of ", n * group, " elements; got shapes ", str(mean.sizes()),
        " and ", str(rstd.sizes()));
  const DType d = weight.defined() ? weight.dtype() : mean.dtype();
  if (mask[0]) m.result_format(0, input.sizes(), input.dtype(), suggested_format(input));
  if (mask[1]) m.result(1, IntVec{c}, d);
  if (mask[2]) m.result(2, IntVec{c}, d);
}

Tensor group_norm(const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  const int64_t n = input.size(0), c = input.size(1);
  int64_t hxw = 1;
  for (int64_t d = 2; d < input.dim(); ++d) hxw *= input.size(d);
  check_groups(weight, bias, n, c, hxw, groups, input);
  return std::get<0>(ops::native_group_norm(input, weight, bias, n, c, hxw, groups, eps));
}

// (N, group) statistics against an input seen as (N, group, rest).
struct GroupNormParts {
  Tensor normal, rstd;  // normalised input, (N, group, rest), and (N, group, 1)
  int64_t rest;
};
GroupNormParts group_norm_parts(Backward& b) {
  const int64_t n = b.integer("N"), group = b.integer("group"),
                rest = b.integer("C") / group * b.integer("HxW");
  const Tensor x = ops::reshape(b["input"], {n, group, rest});
  const Tensor mean = ops::unsqueeze(b.result(1), -1), rstd = ops::unsqueeze(b.result(2), -1);
  return {ops::mul(ops::sub(x, mean), rstd), rstd, rest};
}

// Of the mean, 1 / rest each; of rstd, -rstd^2 normal / rest.
Tensor statistics_gradient(Backward& b) {
  const GroupNormParts p = group_norm_parts(b);
  Tensor sum = ops::zeros_like(p.normal);
  if (b.grad(1).defined()) sum = ops::add(sum, ops::unsqueeze(b.grad(1), -1));
  if (b.grad(2).defined()) {
    const Tensor scale = ops::mul(ops::unsqueeze(b.grad(2), -1), ops::mul(p.rstd, p.rstd));
    sum = ops::sub(sum, ops::mul(p.normal, scale));
  }
  return ops::reshape(ops::div(sum, p.rest), b.sizes("input"));
}

void group_norm_gradient(Backward& b) {
  const bool with_statistics = b.grad(1).defined() || b.grad(2).defined();
  const Tensor more = with_statistics && b.needs("input") ? statistics_gradient(b) : Tensor();
  if (!b.grad().defined()) return b.set("input", more);
  const bool mask[] = {b.needs("input"), b.needs("weight"), b.needs("bias")};
  auto [input, weight, bias] = ops::native_group_norm_backward(
      b.grad(), b["input"], b.result(1), b.result(2), b["weight"], b.integer("N"), b.integer("C"),
      b.integer("HxW"), b.integer("group"), mask);
  b.set("input", more.defined() ? ops::add(input, more) : input);
  b.set("weight", weight);
  b.set("bias", bias);
}

// Everything as (N, group, rest): a number for each channel is spread over its elements.
void group_norm_second(Backward& b) {
  const int64_t n = b.integer("N"), c = b.integer("C"), hxw = b.integer("HxW"),
                group = b.integer("group");
  const IntVec grouped{n, group, c / group * hxw};
  auto view = [&](const Tensor& t) { return t.defined() ? ops::reshape(t, grouped) : t; };
  auto spread = [&](const Tensor& t) {
    return t.defined() ? ops::reshape(ops::expand(ops::reshape(t, {1, c, 1}), {n, c, hxw}), grouped)
                       : t;
  };
  const Tensor rstd = ops::reshape(b["rstd"], {n, group, 1}),
               mean = ops::reshape(b["mean"], {n, group, 1});
  const Normalized parts{ops::mul(ops::sub(view(b["input"]), mean), rstd), rstd, IntVec{-1}};
  const SecondOrder s = second_order(parts, view(b["grad_out"]), spread(b["weight"]),
                                     view(b.grad(0)), spread(b.grad(1)), spread(b.grad(2)));
  if (b.needs("grad_out") && s.grad_out.defined())
    b.set("grad_out", ops::reshape(s.grad_out, b.sizes("grad_out")));
  if (b.needs("input") && s.input.defined())
    b.set("input", ops::reshape(s.input, b.sizes("input")));
  if (b.needs("weight") && s.weight.defined())
    b.set("weight", ops::sum(ops::reshape(s.weight, {n, c, hxw}), IntList{0, 2}));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(native_layer_norm){
    .schema =
        "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
        "float eps) -> "
        "(Tensor, Tensor, Tensor)",
    .doc =
        "Input normalised to mean 0 and variance 1 over its last dimensions, scaled and shifted; "
        "with mean and 1/std.",
    .forms = function | out,
    .out_layout = OutLayout::Contiguous,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_layer_norm>,
    .cpu = cpu::layer_norm_kernel,
    .derivatives = {vjp(names("input", "weight", "bias"), layer_norm_gradient,
                        saves("input", "weight", "bias", "result1", "result2"))},
    .not_differentiable = names("result1", "result2"),
    .jvp = layer_norm_tangent,
    .batch = batch::layer_norm,
};
OP(native_layer_norm_backward){
    .schema =
        "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, "
        "Tensor mean, Tensor rstd, "
        "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .doc = "Gradients of native_layer_norm with respect to input, weight and bias.",
    .forms = hidden | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_layer_norm_backward>,
    .cpu = cpu::layer_norm_backward_kernel,
    .derivatives = {vjp(names("grad_out", "input", "weight"), layer_norm_second,
                        saves("grad_out", "input", "mean", "rstd", "weight"))},
    .batch = batch::layer_norm_backward,
};
OP(layer_norm){
    .schema =
        "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? "
        "bias=None, "
        "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    .doc =
        "Input normalised to mean 0 and variance 1 over its last dimensions, scaled and shifted.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<layer_norm>,
};
OP(_fused_rms_norm){
    .schema =
        "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
        "(Tensor, Tensor)",
    .doc =
        "Input divided by the root of its mean square over its last dimensions, scaled; with the "
        "reciprocal of that root.",
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_rms_norm>,
    .cpu = cpu::rms_norm_kernel,
    .derivatives = {vjp(names("input", "weight"), rms_norm_gradient,
                        saves("input", "weight", "result1"))},
    .not_differentiable = names("result1"),
    .jvp = rms_norm_tangent,
    .batch = batch::layer_norm,
};
OP(_fused_rms_norm_backward){
    .schema =
        "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor "
        "rstd, Tensor? weight, "
        "bool[2] output_mask) -> (Tensor, Tensor)",
    .doc = "Gradients of _fused_rms_norm with respect to input and weight.",
    .forms = hidden,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_rms_norm_backward>,
    .cpu = cpu::rms_norm_backward_kernel,
    .derivatives = {vjp(names("grad_out", "input", "weight"), rms_norm_second,
                        saves("grad_out", "input", "rstd", "weight"))},
    .batch = batch::layer_norm_backward,
};
OP(rms_norm){
    .schema =
        "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) "
        "-> Tensor",
    .doc = "Input divided by the root of its mean square over its last dimensions, scaled.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<rms_norm>,
};
OP(native_group_norm){
    .schema =
        "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
        "HxW, int group, "
        "float eps) -> (Tensor, Tensor, Tensor)",
    .doc =
        "Input normalised over groups of channels of each sample, scaled and shifted; with mean "
        "and 1/std, (N, group).",
    .forms = function | out,
    .meta = typed_meta<meta_group_norm>,
    .cpu = cpu::group_norm_kernel,
    .derivatives = {vjp(names("input", "weight", "bias"), group_norm_gradient,
                        saves("input", "weight", "result1", "result2"))},
    .jvp = group_norm_tangent,
    .batch = batch::group_norm,
};
OP(native_group_norm_backward){
    .schema =
        "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
        "Tensor? weight, SymInt N, "
        "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .doc = "Gradients of native_group_norm with respect to input, weight and bias.",
    .forms = hidden | out,
    .meta = typed_meta<meta_group_norm_backward>,
    .cpu = cpu::group_norm_backward_kernel,
    .derivatives = {vjp(names("grad_out", "input", "weight"), group_norm_second,
                        saves("grad_out", "input", "mean", "rstd", "weight"))},
    .batch = batch::group_norm_backward,
};
OP(group_norm){
    .schema =
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
        "eps=1e-05, "
        "bool cudnn_enabled=True) -> Tensor",
    .doc =
        "Input (N, C, ...) normalised over groups of channels of each sample, scaled and shifted.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<group_norm>,
};
