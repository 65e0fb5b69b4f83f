// Elements brought between bounds.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct clamp {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  static constexpr int params = 2;
  template <class T>
  static T call(T x, T low, T high) {
    const T above = x < low ? low : x, within = above > high ? high : above;
    return high != high ? high : within;  // the bounds are both NaN or neither
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/clamp.h"

#include <limits>

#include "dispatch/out_dtype.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/minmax.h"
#include "ops/elementwise/winner_gradient.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

// A bound may lie beyond an integer dtype on its own side only.
void check_bound(const Value& bound, DType d, bool low) {
  if (bound.is_none()) return;
  const Scalar s = bound.as_scalar();
  if (!is_integral(d, false)) return cpu::check_fits(s, d);
  const double near = cpu::saturated(s, d).to<double>(), v = s.to<double>();
  check(low ? v <= near : v >= near, low ? "Clamp min value " : "Clamp max value ", s.str(),
        " is outside the representable range of ", info(d).legacy_name);
}
void clamp_result(Meta& m, DType d) {
  check_kind(ErrorKind::NotImplemented, !is_complex(d), "clamp is not supported for complex types");
  meta::pointwise_result(m, 1, d, d);
}
void meta_clamp(Meta& m) {
  check(!m.arg(1).is_none() || !m.arg(2).is_none(),
        "clamp(): min or max must be given; got None for both");
  const DType d = result_type({m.call.args, 3});
  check_bound(m.arg(1), d, true);
  check_bound(m.arg(2), d, false);
  clamp_result(m, d);
}
template <bool Low>
void meta_clamp_one(Meta& m) {
  const DType d = result_type({m.call.args, 2});
  check_bound(m.arg(1), d, Low);
  clamp_result(m, d);
}

Scalar lowest(DType d) {
  if (is_floating(d)) return -__builtin_inf();
  Scalar s;
  const auto set = [&]<class T>(Type<T>) {
    s = static_cast<int64_t>(std::numeric_limits<T>::lowest());
  };
  dispatch<IntegralTypes, WideUnsignedTypes, bool>(d, "lowest", set);
  return s;
}
// Of uint64 the bits, which read as -1: numbers are at most int64.
Scalar highest(DType d) {
  if (is_floating(d)) return __builtin_inf();
  Scalar s;
  const auto set = [&]<class T>(Type<T>) {
    s = static_cast<int64_t>(std::numeric_limits<T>::max());
  };
  dispatch<IntegralTypes, WideUnsignedTypes, bool>(d, "highest", set);
  return s;
}
bool is_nan(const Value& v) { return v.tag == Tag::Float && v.d != v.d; }

// A nan on either side makes every element nan.
void clamp_bounds(const OpCall& c, DType compute, Scalar* params) {
  const Value &low = c.arg(1), &high = c.arg(2);
  params[0] = low.is_none() ? lowest(compute) : cpu::saturated(low.as_scalar(), compute);
  params[1] = high.is_none() ? highest(compute) : cpu::saturated(high.as_scalar(), compute);
  if (is_nan(low) || is_nan(high)) params[0] = params[1] = __builtin_nan("");
}
void lower_bound(const OpCall& c, DType compute, Scalar* params) {
  params[0] = cpu::saturated(c.arg(1).as_scalar(), compute);
  params[1] = is_nan(c.arg(1)) ? params[0] : highest(compute);
}
void upper_bound(const OpCall& c, DType compute, Scalar* params) {
  params[1] = cpu::saturated(c.arg(1).as_scalar(), compute);
  params[0] = is_nan(c.arg(1)) ? params[1] : lowest(compute);
}

Tensor clamp_tensors(const Tensor& self, const Tensor& min, const Tensor& max) {
  check(min.defined() || max.defined(), "clamp(): min or max must be given; got None for both");
  const Tensor above = min.defined() ? ops::clamp_min(self, min) : self;
  return max.defined() ? ops::clamp_max(above, max) : above;
}
void meta_clamp_tensor(Meta& m) {
  meta::binary(m);
  check_kind(ErrorKind::NotImplemented, !is_complex(m.results[0].dtype),
             "clamp is not supported for complex types");
}

// Back through the upper bound, then through the lower one.
void clamp_tensors_gradient(Backward& b) {
  const Tensor x = b["self"], low = b["min"], high = b["max"];
  const Tensor above = low.defined() ? ops::maximum(x, low) : x;
  Tensor grad = b.grad();
  if (high.defined()) {
    b.set("max", winner_gradient(grad, above, high, ops::gt(high, above)));
    grad = winner_gradient(grad, above, high, ops::gt(above, high));
  }
  if (low.defined()) b.set("min", winner_gradient(grad, x, low, ops::lt(low, x)));
  b.set("self", low.defined() ? winner_gradient(grad, x, low, ops::lt(x, low)) : grad);
}

Tensor clamp_gradient(Backward& b) {
  const Tensor x = b["self"];
  Tensor inside;
  if (!b.is_none("min")) inside = ops::gt(x, b.scalar("min"));
  if (b.is_none("max")) return ops::where(inside, b.grad(), 0);
  const Tensor below = ops::lt(x, b.scalar("max"));
  return ops::where(inside.defined() ? ops::logical_and(inside, below) : below, b.grad(), 0);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(clamp){
    .schema = "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    .doc = "Self brought into [min, max], elementwise; a bound that is None does not bind.",
    .forms = all_forms,
    .aliases = "clip",
    .flags = pointwise | exact_out,
    .meta = meta_clamp,
    .cpu = cpu::with_params<clamp_bounds>(cpu::unary<scalar::clamp>),
    .derivatives = {vjp("self", clamp_gradient, saves("self"))},
};

OP(clamp_Tensor){
    .schema = "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    .doc = "Self brought into [min, max], elementwise; bounds broadcast.",
    .forms = all_forms,
    .aliases = "clip",
    .out_name = "Tensor_out",
    .composite = Composite::Explicit,
    .flags = pointwise,
    .any = typed_kernel<clamp_tensors>,
    .derivatives = {vjp(names("self", "min", "max"), clamp_tensors_gradient,
                        saves("self", "min", "max"))},
};

OP(clamp_min){
    .schema = "clamp_min(Tensor self, Scalar min) -> Tensor",
    .doc = "Self, but min where it is smaller, elementwise.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta_clamp_one<true>,
    .cpu = cpu::with_params<lower_bound>(cpu::unary<scalar::clamp>),
    .derivatives = {vjp(
        "self",
        [](Backward& b) { return ops::where(ops::gt(b["self"], b.scalar("min")), b.grad(), 0); },
        saves("self"))},
    .node = "ClampMinBackward0",
};

OP(clamp_min_Tensor){
    .schema = "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    .doc = "Self, but min where it is smaller, elementwise.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .meta = meta_clamp_tensor,
    .cpu = maximum_loops,
    .derivatives = {vjp(
                        "self",
                        [](Backward& b) { return gradient_where_won<is_less>(b, "self", "min"); },
                        saves("self", "min")),
                    vjp(
                        "min",
                        [](Backward& b) { return gradient_where_won<is_less>(b, "min", "self"); },
                        saves("min", "self"))},
    .node = "ClampMinBackward1",
};

OP(clamp_max){
    .schema = "clamp_max(Tensor self, Scalar max) -> Tensor",
    .doc = "Self, but max where it is larger, elementwise.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta_clamp_one<false>,
    .cpu = cpu::with_params<upper_bound>(cpu::unary<scalar::clamp>),
    .derivatives = {vjp(
        "self",
        [](Backward& b) { return ops::where(ops::lt(b["self"], b.scalar("max")), b.grad(), 0); },
        saves("self"))},
    .node = "ClampMaxBackward0",
};

OP(clamp_max_Tensor){
    .schema = "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    .doc = "Self, but max where it is larger, elementwise.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .meta = meta_clamp_tensor,
    .cpu = minimum_loops,
    .derivatives =
        {vjp(
             "self", [](Backward& b) { return gradient_where_won<is_greater>(b, "self", "max"); },
             saves("self", "max")),
         vjp(
             "max", [](Backward& b) { return gradient_where_won<is_greater>(b, "max", "self"); },
             saves("max", "self"))},
    .node = "ClampMaxBackward1",
};
#endif
