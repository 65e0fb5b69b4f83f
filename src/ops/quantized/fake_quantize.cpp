// Fake quantization: floats rounded to what quantized numbers could hold, with gradients that pass
// straight through where nothing was clamped (Jacob et al. 2018); learned step sizes (Esser et al.
// 2020).
#include "ops/quantized/fake_quantize.h"

#include "dispatch/call.h"
#include "kernels/cpu/quantized/affine.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/arithmetic_numbers.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/rounding.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/quantized/parameters.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

void check_range(int64_t least, int64_t greatest) {
  check(least <= greatest, "`quant_min` should be less than or equal to `quant_max`; got ", least,
        " and ", greatest);
}
void check_zero_point(double zero_point, int64_t least, int64_t greatest) {
  check(zero_point >= static_cast<double>(least) && zero_point <= static_cast<double>(greatest),
        "`zero_point` must be between `quant_min` and `quant_max`; got ", zero_point);
}

void meta_masked(Meta& m) {
  m.result_like(0, m.tensor(0), m.tensor(0).dtype());
  m.result_like(1, m.tensor(0), DType::Bool);
}

void run(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t least,
         int64_t greatest, bool per_channel, const Tensor& output, const Tensor& mask) {
  FACULA_OF_ISA(fake_quantize)
  (self, scale, zero_point, {least, greatest}, per_channel, output, mask);
}

// --- of a whole tensor

Tensor single(double v) {
  const Tensor t = empty_tensor({}, DType::Float64);
  *t.data<double>() = v;
  return t;
}

void per_tensor_masked(const Tensor& self, double scale, int64_t zero_point, int64_t least,
                       int64_t greatest, const Tensor& output, const Tensor& mask) {
  check_range(least, greatest);
  check_zero_point(static_cast<double>(zero_point), least, greatest);
  run(self, single(scale), single(static_cast<double>(zero_point)), least, greatest, false, output,
      mask);
}

Tensor scalar_of(const Tensor& t, const char* what) {
  check(t.numel() == 1, "fake_quantize_per_tensor_affine(): expected ", what,
        " of one element; got one of ", t.numel());
  return ops::reshape(t, {});
}

void tensor_masked(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                   const Tensor& enabled, int64_t least, int64_t greatest, const Tensor& output,
                   const Tensor& mask) {
  check_range(least, greatest);
  const Tensor s = scalar_of(scale, "a scale"), z = scalar_of(zero_point, "a zero point");
  if (ops::item(enabled).to<double>() < 1) {
    ops::copy_(output, self);
    ops::fill_(mask, 1);
    return;
  }
  run(self, s, z, least, greatest, false, output, mask);
}

Tensor per_tensor(const Tensor& self, double scale, int64_t zero_point, int64_t least,
                  int64_t greatest) {
  return std::get<0>(
      ops::fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, least, greatest));
}
Tensor per_tensor_by_tensors(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                             int64_t least, int64_t greatest) {
  const Tensor on = ops::ones({1}, DType::Int64, {}, self.device());
  return std::get<0>(ops::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
      self, scale, zero_point, on, least, greatest));
}

// --- of each channel

// A vector of one number a channel with sizes that broadcast to the tensor's.
Tensor along(const Tensor& vector, const Tensor& self, int64_t axis) {
  IntVec sizes(static_cast<size_t>(self.dim()), 1);
  sizes[static_cast<size_t>(axis)] = vector.numel();
  return ops::view(vector, sizes);
}

void check_channels(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                    int64_t least, int64_t greatest) {
  const DType z = zero_point.dtype();
  check(scale.dtype() == DType::Float32 || scale.dtype() == DType::BFloat16,
        "Scale must be Float or BFloat16, found ", info(scale.dtype()).legacy_name);
  check(z == DType::Int32 || z == DType::Float32 || z == DType::Float16,
        "Zero-point must be Int32, Float or Half, found ", info(z).legacy_name);
  check(scale.dim() == 1, "scale should be a 1-D tensor; got ", scale.dim(), " dimensions");
  check(zero_point.dim() == 1, "zero point should be a 1-D tensor; got ", zero_point.dim(),
        " dimensions");
  check(scale.numel() == zero_point.numel(),
        "scale and zero-point need to have the same dimensions");
  check(scale.numel() == self.size(axis),
        "dimensions of scale and zero-point are not consistent with input tensor");
  check_range(least, greatest);
  check(axis >= 0 && axis < self.dim(),
        "`axis` must be between 0 and number of dimensions of input");
  if (z != DType::Int32 || zero_point.numel() == 0) return;
  check_zero_point(ops::item(ops::min(zero_point)).to<double>(), least, greatest);
  check_zero_point(ops::item(ops::max(zero_point)).to<double>(), least, greatest);
}

void per_channel_masked(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                        int64_t axis, int64_t least, int64_t greatest, const Tensor& output,
                        const Tensor& mask) {
  check_channels(self, scale, zero_point, axis, least, greatest);
  run(self, along(scale, self, axis), along(zero_point, self, axis), least, greatest, true, output,
      mask);
}
Tensor per_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                   int64_t least, int64_t greatest) {
  return std::get<0>(ops::fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis,
                                                                     least, greatest));
}

Tensor where_kept(const Tensor& grad, const Tensor& mask) {
  check(mask.dtype() == DType::Bool, "fake_quantize backward: expected a mask of bool; got ",
        name(mask.dtype()));
  check(mask.numel() == grad.numel(), "`mask` and `grad` are not the same size: `mask` is size ",
        mask.numel(), " and `grad` is size ", grad.numel());
  return ops::mul(grad, mask);
}
Tensor passed_through(Backward& b) { return ops::mul(b.grad(), b.result(1)); }

// --- learned scales and zero points

struct Learned {
  Tensor scale, zero_point;  // with sizes that broadcast; the zero point rounded and in range
};
Learned learned(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                int64_t least, int64_t greatest) {
  const Tensor rounded =
      ops::clamp(ops::round(zero_point), Scalar(least), std::optional<Scalar>(greatest));
  if (axis < 0) return {ops::reshape(scale, {}), ops::reshape(rounded, {})};
  return {along(scale, self, axis), along(rounded, self, axis)};
}

void check_learned(const Tensor& scale, const Tensor& zero_point) {
  check(scale.dtype() == DType::Float32 && zero_point.dtype() == DType::Float32,
        "fake_quantize_learnable: expected a scale and a zero point of float; got ",
        name(scale.dtype()), " and ", name(zero_point.dtype()));
}

Tensor learnable_output(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                        int64_t axis, int64_t least, int64_t greatest) {
  check_learned(scale, zero_point);
  check_range(least, greatest);
  const Learned p = learned(self, scale, zero_point, axis, least, greatest);
  const Tensor output = ops::empty_like(self), mask = ops::empty_like(self, DType::Bool);
  const Tensor integer = ops::to(p.zero_point, DType::Int32);
  run(self, p.scale, integer, least, greatest, axis >= 0, output, mask);
  return output;
}
Tensor learnable_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                            int64_t least, int64_t greatest, double) {
  return learnable_output(self, scale, zero_point, -1, least, greatest);
}
Tensor learnable_per_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                             int64_t axis, int64_t least, int64_t greatest, double) {
  check(axis >= 0 && axis < self.dim(),
        "`axis` must be between 0 and number of dimensions of input");
  check(scale.numel() == self.size(axis) && zero_point.numel() == self.size(axis),
        "dimensions of scale and zero-point are not consistent with input tensor");
  return learnable_output(self, scale, zero_point, axis, least, greatest);
}

// The sum of a gradient over everything but the channels.
Tensor gathered(const Tensor& grad, int64_t axis, const Tensor& like, double factor) {
  Tensor sum;
  if (axis < 0 || grad.dim() == 1) {
    sum = axis < 0 ? ops::sum(grad) : grad;
  } else {
    IntVec others;
    for (int64_t d = 0; d < grad.dim(); ++d)
      if (d != axis) others.push_back(d);
    sum = ops::sum(grad, others);
  }
  return ops::to(ops::mul(ops::reshape(sum, like.sizes()), factor), like.dtype());
}

std::tuple<Tensor, Tensor, Tensor> learnable_backward(const Tensor& grad, const Tensor& self,
                                                      const Tensor& scale, const Tensor& zero_point,
                                                      int64_t axis, int64_t least, int64_t greatest,
                                                      double factor) {
  const Learned p = learned(self, scale, zero_point, axis, least, greatest);
  const Tensor q = ops::add(ops::round(ops::div(self, p.scale)), p.zero_point);
  const Tensor below = ops::lt(q, least), above = ops::gt(q, greatest);
  const Tensor outside = ops::logical_or(below, above);
  const Tensor zeros = ops::zeros_like(grad);
  // Of the scale: how far rounding moved the integer; outside, the clamped integer.
  const Tensor rounded = ops::sub(q, ops::add(ops::div(self, p.scale), p.zero_point));
  const Tensor at_least = ops::rsub(p.zero_point, least),
               at_greatest = ops::rsub(p.zero_point, greatest);
  const Tensor slope = ops::where(below, at_least, ops::where(above, at_greatest, rounded));
  const Tensor by_zero_point = ops::where(outside, ops::neg(ops::mul(grad, p.scale)), zeros);
  return {ops::where(outside, zeros, grad), gathered(ops::mul(grad, slope), axis, scale, factor),
          gathered(by_zero_point, axis, zero_point, factor)};
}
std::tuple<Tensor, Tensor, Tensor> learnable_per_tensor_backward(
    const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero_point,
    int64_t least, int64_t greatest, double factor) {
  return learnable_backward(grad, self, scale, zero_point, -1, least, greatest, factor);
}
std::tuple<Tensor, Tensor, Tensor> learnable_per_channel_backward(
    const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero_point,
    int64_t axis, int64_t least, int64_t greatest, double factor) {
  check(axis >= 0 && axis < self.dim(),
        "`axis` must be between 0 and number of dimensions of input");
  return learnable_backward(grad, self, scale, zero_point, axis, least, greatest, factor);
}

void set_learned(Backward& b, const std::tuple<Tensor, Tensor, Tensor>& grads) {
  b.set("self", std::get<0>(grads));
  b.set("scale", std::get<1>(grads));
  b.set("zero_point", std::get<2>(grads));
}

// --- observing and fake quantization in one

// Running bounds move towards those of the input; the first input sets them.
void follow(const Tensor& running, const Tensor& now, double rate) {
  if (running.numel() != now.numel())
    ops::fill_(ops::resize_(running, now.sizes()), std::numeric_limits<double>::infinity());
  const Tensor seen = ops::reshape(now, running.sizes());
  const Tensor moved = ops::add(running, ops::mul(ops::sub(seen, running), rate));
  ops::copy_(running, ops::where(ops::isinf(running), seen, moved));
}

void set_parameters(const Tensor& low, const Tensor& high, const Tensor& scale,
                    const Tensor& zero_point, int64_t least, int64_t greatest, bool symmetric) {
  const Tensor from = ops::contiguous(ops::to(low, DType::Float32)),
               to = ops::contiguous(ops::to(high, DType::Float32));
  const int64_t n = from.numel();
  const Tensor scales = empty_tensor(IntSpan(&n, 1), DType::Float32),
               zeros = empty_tensor(IntSpan(&n, 1), DType::Int32);
  for (int64_t i = 0; i < n; ++i) {
    const AffineChoice p = choose_parameters(from.data<float>()[i], to.data<float>()[i], least,
                                             greatest, {.preserves_zero_center = symmetric});
    scales.data<float>()[i] = static_cast<float>(p.scale);
    zeros.data<int32_t>()[i] = static_cast<int32_t>(p.zero_point);
  }
  if (scale.numel() != n) ops::resize_(scale, {n});
  if (zero_point.numel() != n) ops::resize_(zero_point, {n});
  ops::copy_(scale, ops::reshape(scales, scale.sizes()));
  ops::copy_(zero_point, ops::reshape(zeros, zero_point.sizes()));
}

void observe(const Tensor& x, const Tensor& running_min, const Tensor& running_max,
             const Tensor& scale, const Tensor& zero_point, double rate, int64_t least,
             int64_t greatest, int64_t axis, bool per_row, bool symmetric) {
  Tensor low, high;
  if (per_row) {
    const Tensor rows = ops::flatten(ops::movedim(x, {axis}, {0}), 1);
    low = ops::amin(rows, {1});
    high = ops::amax(rows, {1});
  } else {
    low = ops::min(x);
    high = ops::max(x);
  }
  follow(running_min, low, rate);
  follow(running_max, high, rate);
  set_parameters(running_min, running_max, scale, zero_point, least, greatest, symmetric);
}

std::tuple<Tensor, Tensor> observed_fake_quantize(const Tensor& self, const Tensor& observer_on,
                                                  const Tensor& fake_quant_on,
                                                  const Tensor& running_min,
                                                  const Tensor& running_max, const Tensor& scale,
                                                  const Tensor& zero_point, double rate,
                                                  int64_t least, int64_t greatest, int64_t axis,
                                                  bool per_row, bool symmetric) {
  check(axis < self.dim(),
        "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()");
  if (ops::item(observer_on).to<int64_t>())
    observe(self, running_min, running_max, scale, zero_point, rate, least, greatest, axis, per_row,
            symmetric);
  if (!ops::item(fake_quant_on).to<int64_t>())
    return {ops::clone(self), ops::ones_like(self, DType::Bool)};
  const Tensor whole = ops::to(zero_point, DType::Int32);
  if (per_row)
    return ops::fake_quantize_per_channel_affine_cachemask(self, scale, whole, axis, least,
                                                           greatest);
  const Tensor on = ops::ones({1}, DType::Int64, {}, self.device());
  return ops::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, scale, whole, on,
                                                                        least, greatest);
}

Tensor fused(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on,
             const Tensor& running_min, const Tensor& running_max, const Tensor& scale,
             const Tensor& zero_point, double rate, int64_t least, int64_t greatest, int64_t axis,
             bool per_row, bool symmetric) {
  if (self.numel() == 0) return ops::clone(self);
  return std::get<0>(ops::_fused_moving_avg_obs_fq_helper(
      self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, rate, least,
      greatest, axis, per_row, symmetric));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(fake_quantize_per_tensor_affine){
    .schema =
        "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int "
        "quant_min, int quant_max) -> Tensor",
    .doc = "Self rounded to the values of a quantized tensor with this scale and zero point.",
    .composite = Composite::Implicit,
    .any = typed_kernel<per_tensor>,
};
OP(fake_quantize_per_tensor_affine_tensor_qparams){
    .schema =
        "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor "
        "zero_point, int quant_min, int quant_max) -> Tensor",
    .doc = "Self rounded to the values of a quantized tensor with this scale and zero point.",
    .composite = Composite::Implicit,
    .any = typed_kernel<per_tensor_by_tensors>,
};
OP(fake_quantize_per_tensor_affine_cachemask){
    .schema =
        "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, "
        "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    .doc = "What fake_quantize_per_tensor_affine, and where the integers were in range.",
    .forms = hidden | out,
    .flags = runs_when_called,
    .meta = meta_masked,
    .cpu = typed_kernel<per_tensor_masked>,
    .derivatives = {vjp("self", passed_through, saves("mask"))},
    .not_differentiable = names("mask"),
    .batch = batch::pointwise,
};
OP(_fake_quantize_per_tensor_affine_cachemask_tensor_qparams){
    .schema =
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, "
        "Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> "
        "(Tensor output, Tensor mask)",
    .doc =
        "What fake_quantize_per_tensor_affine, and where the integers were in range; self where "
        "fake_quant_enabled is 0.",
    .forms = hidden | out,
    .flags = runs_when_called,
    .meta = meta_masked,
    .cpu = typed_kernel<tensor_masked>,
    .derivatives = {vjp("self", passed_through, saves("mask"))},
    .not_differentiable = names("scale", "zero_point", "fake_quant_enabled", "mask"),
    .hole = "its scales and zero points are read as numbers or lie along one dimension",
};
OP(fake_quantize_per_tensor_affine_cachemask_backward){
    .schema =
        "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    .doc = "Grad where mask is set, else 0.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<where_kept>,
};
OP(fake_quantize_per_channel_affine){
    .schema =
        "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int "
        "axis, int quant_min, int quant_max) -> Tensor",
    .doc = "Self rounded to the values of a tensor that is quantized by channels along axis.",
    .composite = Composite::Implicit,
    .any = typed_kernel<per_channel>,
};
OP(fake_quantize_per_channel_affine_cachemask){
    .schema =
        "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor "
        "zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    .doc = "What fake_quantize_per_channel_affine, and where the integers were in range.",
    .forms = hidden | out,
    .flags = runs_when_called,
    .meta = meta_masked,
    .cpu = typed_kernel<per_channel_masked>,
    .derivatives = {vjp("self", passed_through, saves("mask"))},
    .not_differentiable = names("scale", "zero_point", "mask"),
    .hole = "its scales and zero points are read as numbers or lie along one dimension",
};
OP(fake_quantize_per_channel_affine_cachemask_backward){
    .schema =
        "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    .doc = "Grad where mask is set, else 0.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<where_kept>,
};
OP(_fake_quantize_learnable_per_tensor_affine){
    .schema =
        "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor "
        "zero_point, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
    .doc = "What fake_quantize_per_tensor_affine whose scale and zero point get gradients.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<learnable_per_tensor>,
    .derivatives = {vjp(
        names("self", "scale", "zero_point"),
        [](Backward& b) {
          set_learned(b,
                      ops::_fake_quantize_learnable_per_tensor_affine_backward(
                          b.grad(), b["self"], b["scale"], b["zero_point"], b.integer("quant_min"),
                          b.integer("quant_max"), b.number("grad_factor")));
        },
        saves("self", "scale", "zero_point"))},
};
OP(_fake_quantize_learnable_per_channel_affine){
    .schema =
        "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor "
        "zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
    .doc = "What fake_quantize_per_channel_affine whose scales and zero points get gradients.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<learnable_per_channel>,
    .derivatives = {vjp(
        names("self", "scale", "zero_point"),
        [](Backward& b) {
          set_learned(b,
                      ops::_fake_quantize_learnable_per_channel_affine_backward(
                          b.grad(), b["self"], b["scale"], b["zero_point"], b.integer("axis"),
                          b.integer("quant_min"), b.integer("quant_max"), b.number("grad_factor")));
        },
        saves("self", "scale", "zero_point"))},
};
OP(_fake_quantize_learnable_per_tensor_affine_backward){
    .schema =
        "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor "
        "scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> "
        "(Tensor, Tensor, Tensor)",
    .doc = "Gradients of _fake_quantize_learnable_per_tensor_affine.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<learnable_per_tensor_backward>,
};
OP(_fake_quantize_learnable_per_channel_affine_backward){
    .schema =
        "_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, "
        "Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float "
        "grad_factor=1.) -> (Tensor, Tensor, Tensor)",
    .doc = "Gradients of _fake_quantize_learnable_per_channel_affine.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<learnable_per_channel_backward>,
};
OP(fused_moving_avg_obs_fake_quant){
    .schema =
        "fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor "
        "fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, "
        "Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int "
        "ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor",
    .doc =
        "Moves running bounds towards self's, sets scale and zero_point by them, and fake "
        "quantizes self.",
    .composite = Composite::Implicit,
    .any = typed_kernel<fused>,
};
OP(_fused_moving_avg_obs_fq_helper){
    .schema =
        "_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor "
        "fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, "
        "Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int "
        "ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor "
        "output, Tensor mask)",
    .doc = "What fused_moving_avg_obs_fake_quant, and where the integers were in range.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<observed_fake_quantize>,
    .derivatives = {vjp("self", passed_through, saves("mask"))},
    .not_differentiable = names("running_min", "running_max", "scale", "zero_point", "mask"),
    .hole = "its scales and zero points are read as numbers or lie along one dimension",
};
