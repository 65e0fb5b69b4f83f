// Activation functions that are linear in pieces, elu, and their gradients.
#include <limits>

#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct relu {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  template <class T>
  static T call(T x) {
    return x < T(0) ? T(0) : x;
  }
};

struct threshold {
  static constexpr unsigned dtypes = real_numbers;
  static constexpr int params = 2;
  template <class T>
  static T call(T x, T limit, T value) {
    return x <= limit ? value : x;
  }
};

struct threshold_backward {
  static constexpr unsigned dtypes = real_numbers;
  static constexpr int params = 1;
  template <class T>
  static T call(T grad, T x, T limit) {
    return x <= limit ? T(0) : grad;
  }
};

struct leaky_relu {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 1;
  template <class T>
  static T call(T x, T slope) {
    return x > T(0) ? x : x * slope;
  }
};

struct leaky_relu_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 1;
  template <class T>
  static T call(T grad, T x, T slope) {
    return x > T(0) ? grad : grad * slope;
  }
};

struct elu {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 560;
  static constexpr int params = 3;
  template <class T>
  static T call(T x, T alpha, T scale, T input_scale) {
    return x < T(0) ? math::expm1(x * input_scale) * (alpha * scale) : x * scale;
  }
};

struct elu_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 560;
  static constexpr int params = 4;
  template <class T>
  static T call(T grad, T y, T alpha, T scale, T input_scale, T is_result) {
    const T factor = input_scale * alpha * scale;
    const T steep = is_result != T(0) ? input_scale * (y + alpha * scale)
                                      : factor * math::exp_by_parts(y * input_scale);
    return y <= T(0) ? grad * steep : grad * scale;
  }
};

struct hardtanh {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  static constexpr int params = 2;
  template <class T>
  static T call(T x, T low, T high) {
    const T above = x < low ? low : x;
    return above > high ? high : above;
  }
};

struct hardtanh_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 2;
  template <class T>
  static T call(T grad, T x, T low, T high) {
    return x <= low || x >= high ? T(0) : grad;
  }
};

template <class T>
inline T ramp(T x) {  // relu6(x + 3)
  const T y = x + T(3), above = y < T(0) ? T(0) : y;
  return above > T(6) ? T(6) : above;
}
struct hardsigmoid {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T x) {
    return ramp(x) / T(6);
  }
};

struct hardsigmoid_backward {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T grad, T x) {
    return x > T(-3) && x < T(3) ? grad * (T(1) / T(6)) : T(0);
  }
};

struct hardswish {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T x) {
    return x * ramp(x) / T(6);
  }
};

struct hardswish_backward {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T grad, T x) {
    return x <= T(-3) ? T(0) : (x < T(3) ? grad * (x / T(3) + T(0.5)) : grad);
  }
};

struct hardshrink {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 1;
  static constexpr bool narrow_params = true;
  template <class T>
  static T call(T x, T limit) {
    return x >= -limit && x <= limit ? T(0) : x;
  }
};

struct shrink_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 1;
  template <class T>
  static T call(T grad, T x, T limit) {
    return x >= -limit && x <= limit ? T(0) : grad;
  }
};

struct softshrink {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 1;
  static constexpr bool narrow_params = true;
  template <class T>
  static T call(T x, T limit) {
    return x > limit ? x - limit : (x < -limit ? x + limit : x * T(0));
  }
};

struct prelu {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T x, T weight) {
    return x > T(0) ? x : x * weight;
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/activation.h"

#include <mutex>

#include "core/random.h"
#include "dispatch/out_dtype.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/random/stream.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

Tensor zeros(Backward& b) { return ops::zeros_like(b.grad()); }
// The gradients of a backward operator: in its gradient it is linear, in self its slope changes.
Tensor bent(Backward& b, const Tensor& bend) {
  return ops::mul(ops::mul(b.grad(), b["grad_output"]), bend);
}

void not_bool(Meta& m, const char* what) {
  check_kind(ErrorKind::NotImplemented, m.tensor(0).dtype() != DType::Bool, what,
             " inputs not supported for ", m.op_name());
  check_kind(ErrorKind::NotImplemented, !is_complex(m.tensor(0).dtype()),
             "clamp is not supported for complex types");
}
void meta_relu(Meta& m) {
  not_bool(m, "Boolean");
  meta::unary(m);
}
void meta_hardtanh(Meta& m) {
  not_bool(m, "Bool");
  meta::unary(m);
}
// Bounds outside an integer's range do not bind.
void hardtanh_bounds(const OpCall& c, DType compute, Scalar* params) {
  for (int i = 0; i < 2; ++i) params[i] = cpu::saturated(c.arg(i + 1).as_scalar(), compute);
}
double largest(DType t) {
  switch (t) {
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 0x1.FEp127;
    case DType::Float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

void meta_shrink(Meta& m) {
  const Scalar limit = m.arg(1).as_scalar();
  const double value = limit.to<double>(), most = largest(m.tensor(0).dtype());
  check(value >= 0 && value <= most, "softshrink(): lambda must be in range [0, ", most,
        "] for input dtype ", info(m.tensor(0).dtype()).legacy_name, ", but found ", limit.str());
  meta::unary(m);
}
void meta_like_first(Meta& m) {
  const DType d = m.tensor(0).dtype();
  meta::pointwise_result(m, 1, d, d);
}

// --- elu and its special cases

constexpr double selu_alpha = 1.6732632423543772, selu_scale = 1.0507009873554805;

void elu_numbers(const OpCall& c, DType, Scalar* params) {
  for (int i = 0; i < 4; ++i) params[i] = c.arg(i + 1).as_scalar();
}
void meta_elu_backward(Meta& m) {
  check(!m.arg(4).b || m.arg(1).as_scalar().to<double>() >= 0,
        "elu_backward(): with is_result the negative slope must not be negative; got ",
        m.arg(1).as_scalar().to<double>());
  const Tensor &grad = m.tensor(0), &self = m.tensor(5);
  if (same_sizes(grad.sizes(), self.sizes())) return meta_like_first(m);
  m.result(0, broadcast_sizes(grad.sizes(), self.sizes()), grad.dtype());
}
void meta_leaky_relu_backward(Meta& m) {
  check(!m.arg(3).b || m.arg(2).as_scalar().to<double>() >= 0,
        "leaky_relu_backward(): with self_is_result the negative slope must not be negative; got ",
        m.arg(2).as_scalar().to<double>());
  meta::binary(m);
}
Tensor selu(const Tensor& self) { return ops::elu(self, selu_alpha, selu_scale); }
Tensor selu_(const Tensor& self) { return ops::elu_(self, selu_alpha, selu_scale); }
Scalar inverse_of(const Scalar& alpha) {
  check(!alpha.equals(0), "ZeroDivisionError: alpha cannot be 0 for CELU");
  return 1.0 / alpha.to<double>();
}
Tensor celu(const Tensor& self, const Scalar& alpha) {
  return ops::elu(self, alpha, 1, inverse_of(alpha));
}
Tensor celu_(const Tensor& self, const Scalar& alpha) {
  return ops::elu_(self, alpha, 1, inverse_of(alpha));
}
Tensor relu6(const Tensor& self) { return ops::hardtanh(self, 0, 6); }
Tensor relu6_(const Tensor& self) { return ops::hardtanh_(self, 0, 6); }

// The second derivative of elu, by self.
Tensor elu_bend(Backward& b) {
  const Tensor y = b["self_or_result"];
  const double alpha = b.number("alpha"), scale = b.number("scale"),
               input_scale = b.number("input_scale");
  const Tensor steep = b.flag("is_result") ? ops::full_like(y, input_scale)
                                           : ops::mul(ops::exp(ops::mul(y, input_scale)),
                                                      alpha * scale * input_scale * input_scale);
  return ops::where(ops::le(y, 0), steep, 0);
}

Tensor hardswish_bend(const Tensor& x) {
  const Tensor inside = ops::logical_and(ops::gt(x, -3), ops::lt(x, 3));
  return ops::where(inside, ops::full_like(x, 1.0 / 3), 0);
}

// --- prelu

Tensor prelu(const Tensor& self, const Tensor& weight) {
  check(self.dtype() == weight.dtype(), "prelu(): weight must have input's dtype, ",
        name(self.dtype()), "; got ", name(weight.dtype()));
  check(weight.dim() <= 1, "prelu(): weight must be a scalar or 1-D; got ", weight.dim(), "-D");
  const int64_t n = weight.numel();
  if (n == 1)
    return ops::_prelu_kernel(self, weight.dim() == 0 ? weight : ops::reshape(weight, {}));
  check(self.dim() > 0, "prelu(): input must have a dimension where weight has several elements");
  const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  check(n == 1 || n == channels, "prelu(): weight must have one element or one for each of the ",
        channels, " channels; got ", n);
  IntVec shape(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) shape[1] = n;
  return ops::_prelu_kernel(self, ops::reshape(weight, shape));
}
std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad, const Tensor& self,
                                          const Tensor& weight) {
  const Tensor positive = ops::gt(self, 0);
  return {ops::where(positive, grad, ops::mul(grad, weight)),
          ops::where(positive, 0, ops::mul(self, grad))};
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(relu){
    .schema = "relu(Tensor self) -> Tensor",
    .doc = "max(self, 0), elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta_relu,
    .cpu = cpu::unary<scalar::relu>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::threshold_backward(b.grad(), b["result"], 0); },
        saves("result"))},
};

OP(threshold){
    .schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    .doc = "Self where it is above threshold, else value.",
    .forms = function | inplace | out,
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::threshold>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::threshold_backward(b.grad(), b["self"], b.scalar("threshold"));
        },
        saves("self"))},
};

OP(threshold_backward){
    .schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    .doc = "Gives grad_output where self is above threshold, else zero.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::threshold_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::threshold_backward(b.grad(), b["self"], b.scalar("threshold"));
                },
                saves("self")),
            vjp("self", zeros),
        },
};

OP(relu6){
    .schema = "relu6(Tensor self) -> Tensor",
    .doc = "min(max(self, 0), 6), elementwise.",
    .forms = function,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .any = typed_kernel<relu6>,
};

OP(relu6_){
    .schema = "relu6_(Tensor(a!) self) -> Tensor(a!)",
    .doc = "The relu6 of self, in place.",
    .forms = function,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .any = typed_kernel<relu6_>,
};

OP(leaky_relu){
    .schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    .doc = "Self where positive, else negative_slope * self.",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::leaky_relu>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::leaky_relu_backward(b.grad(), b["self"], b.scalar("negative_slope"), false);
        },
        saves("self"))},
};

OP(leaky_relu_backward){
    .schema =
        "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool "
        "self_is_result) -> Tensor",
    .doc = "Gives grad_output where self is positive, else negative_slope * grad_output.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta_leaky_relu_backward,
    .cpu = cpu::binary<scalar::leaky_relu_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::leaky_relu_backward(b.grad(), b["self"], b.scalar("negative_slope"),
                                                  false);
                },
                saves("self")),
            vjp("self", zeros),
        },
};

OP(elu){
    .schema = "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    .doc = "scale * self where positive, else scale * alpha * (exp(input_scale * self) - 1).",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::elu>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::elu_backward(b.grad(), b.scalar("alpha"), b.scalar("scale"),
                                   b.scalar("input_scale"), false, b["self"]);
        },
        saves("self"))},
};

OP(elu_backward){
    .schema =
        "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool "
        "is_result, Tensor self_or_result) -> Tensor",
    .doc = "Gradient of elu from its input, or from its result where is_result.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta_elu_backward,
    .cpu = cpu::with_params<elu_numbers, 0, 5>(cpu::binary<scalar::elu_backward>),
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::elu_backward(b.grad(), b.scalar("alpha"), b.scalar("scale"),
                                           b.scalar("input_scale"), b.flag("is_result"),
                                           b["self_or_result"]);
                },
                saves("self_or_result")),
            vjp(
                "self_or_result", [](Backward& b) { return bent(b, elu_bend(b)); },
                saves("grad_output", "self_or_result")),
        },
};

OP(selu){
    .schema = "selu(Tensor self) -> Tensor",
    .doc = "Elu scaled so that activations keep mean zero and variance one.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = typed_kernel<selu>,
};

OP(selu_){
    .schema = "selu_(Tensor(a!) self) -> Tensor(a!)",
    .doc = "The selu of self, in place.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = typed_kernel<selu_>,
};

OP(celu){
    .schema = "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    .doc = "max(0, self) + min(0, alpha * (exp(self / alpha) - 1)).",
    .forms = function,
    .composite = Composite::Explicit,
    .any = typed_kernel<celu>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          const Scalar alpha = b.scalar("alpha");
          return ops::elu_backward(b.grad(), alpha, 1, inverse_of(alpha), false, b["self"]);
        },
        saves("self"))},
};

OP(celu_){
    .schema = "celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)",
    .doc = "The celu of self, in place.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = typed_kernel<celu_>,
};

OP(hardtanh){
    .schema = "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    .doc = "Self brought into [min_val, max_val].",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise,
    .meta = meta_hardtanh,
    .cpu = cpu::with_params<hardtanh_bounds>(cpu::unary<scalar::hardtanh>),
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::hardtanh_backward(b.grad(), b["self"], b.scalar("min_val"),
                                        b.scalar("max_val"));
        },
        saves("self"))},
};

OP(hardtanh_backward){
    .schema =
        "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> "
        "Tensor",
    .doc = "Gives grad_output where self is strictly between the bounds, else zero.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::hardtanh_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::hardtanh_backward(b.grad(), b["self"], b.scalar("min_val"),
                                                b.scalar("max_val"));
                },
                saves("self")),
            vjp("self", zeros),
        },
};

OP(hardsigmoid){
    .schema = "hardsigmoid(Tensor self) -> Tensor",
    .doc = "relu6(self + 3) / 6, elementwise.",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::hardsigmoid>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::hardsigmoid_backward(b.grad(), b["self"]); },
        saves("self"))},
};

OP(hardsigmoid_backward){
    .schema = "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "Gradient of hardsigmoid.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::hardsigmoid_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) { return ops::hardsigmoid_backward(b.grad(), b["self"]); },
                saves("self")),
            vjp("self", zeros),
        },
};

OP(hardswish){
    .schema = "hardswish(Tensor self) -> Tensor",
    .doc = "self * relu6(self + 3) / 6, elementwise.",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::hardswish>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::hardswish_backward(b.grad(), b["self"]); },
        saves("self"))},
};

OP(hardswish_backward){
    .schema = "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "Gradient of hardswish.",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::hardswish_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) { return ops::hardswish_backward(b.grad(), b["self"]); },
                saves("self")),
            vjp(
                "self", [](Backward& b) { return bent(b, hardswish_bend(b["self"])); },
                saves("grad_output", "self")),
        },
};

OP(hardshrink){
    .schema = "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    .doc = "Zero where |self| <= lambd, else self.",
    .forms = function | method | out,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::hardshrink>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::hardshrink_backward(b.grad(), b["self"], b.scalar("lambd"));
        },
        saves("self"))},
};

OP(hardshrink_backward){
    .schema = "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    .doc = "Zero where |self| <= lambd, else grad_out.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::shrink_backward>,
    .derivatives =
        {
            vjp(
                "grad_out",
                [](Backward& b) {
                  return ops::hardshrink_backward(b.grad(), b["self"], b.scalar("lambd"));
                },
                saves("self")),
            vjp("self", zeros),
        },
};

OP(softshrink){
    .schema = "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    .doc = "Self brought towards zero by lambd, at most to zero.",
    .forms = function | out,
    .python_module = "nn",
    .flags = pointwise | exact_out,
    .meta = meta_shrink,
    .cpu = cpu::unary<scalar::softshrink>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::softshrink_backward(b.grad(), b["self"], b.scalar("lambd"));
        },
        saves("self"))},
};

OP(softshrink_backward){
    .schema = "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
    .doc = "Zero where |self| <= lambd, else grad_output.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::shrink_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::softshrink_backward(b.grad(), b["self"], b.scalar("lambd"));
                },
                saves("self")),
            vjp("self", zeros),
        },
};

OP(prelu){
    .schema = "prelu(Tensor self, Tensor weight) -> Tensor",
    .doc =
        "Self where positive, else weight * self; one weight, or one for each channel (dimension "
        "1).",
    .forms = function_method,
    .composite = Composite::Implicit,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<prelu>,
};

OP(_prelu_kernel){
    .schema = "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    .doc = "Self where positive, else weight * self; weight broadcasts.",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::prelu>,
    .derivatives = {vjp(
        names("self", "weight"),
        [](Backward& b) {
          const auto [to_self, to_weight] =
              ops::_prelu_kernel_backward(b.grad(), b["self"], b["weight"]);
          b.set("self", to_self);
          b.set("weight", to_weight);
        },
        saves("self", "weight"))},
};

OP(_prelu_kernel_backward){
    .schema =
        "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, "
        "Tensor)",
    .doc =
        "Gradients of _prelu_kernel in self and, before it is summed over broadcast dimensions, in "
        "weight.",
    .composite = Composite::Implicit,
    .any = typed_kernel<prelu_backward>,
};
#endif
