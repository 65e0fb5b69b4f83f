// Exponentials, logarithms, and the logistic function.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"
#include "kernels/scalar/probability.h"

namespace facula::scalar {

struct exp_narrow {
  static constexpr Packs packs{4, 0};
  template <class T>
  static T call(T x) {
    return math::exp_coarse(x);
  }
};
struct exp {
  static constexpr unsigned dtypes = floating | complex;
  using Narrow = exp_narrow;
  static constexpr int cost = 280;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return math::exp(x);
  }
};

struct exp2 {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 200;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    if constexpr (is_complex_v<T>)
      return math::exp(x * T(0.6931471805599453));
    else
      return math::exp2(x);
  }
};

struct expm1 {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 350;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return math::expm1(x);
  }
};

struct log {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 300;
  static constexpr Packs packs{2, 4};
  template <class T>
  static T call(T x) {
    return math::log(x);
  }
};

struct log2 {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 350;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return math::log2(x);
  }
};

struct log10 {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 350;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return math::log10(x);
  }
};

struct log1p {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 330;
  static constexpr Packs packs{2, 2};
  template <class T>
  static T call(T x) {
    return math::log1p(x);
  }
};

struct sigmoid {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 300;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return math::sigmoid(x);
  }
};

struct sigmoid_backward {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T grad, T y) {
    if constexpr (is_complex_v<T>)
      return grad * conj(y * (T(1) - y));
    else
      return grad * (T(1) - y) * y;
  }
};

struct logit {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 400;
  static constexpr int params = 1;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x, math::lane_t<T> eps) {
    // Without a branch, so that loops become vectors: no eps is no bound.
    using L = math::lane_t<T>;
    constexpr L infinity = math::detail::infinity<L>;
    const L low = eps < L(0) ? -infinity : eps, high = eps < L(0) ? infinity : L(1) - eps;
    return math::logit(math::between(x, low, high));
  }
};

struct logit_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 1;
  template <class T>
  static T call(T grad, T x, T eps) {
    if (eps < T(0))
      return x < T(0) || x > T(1) ? math::detail::quiet_nan<T> : grad / (x * (T(1) - x));
    return x < eps || x > T(1) - eps ? T(0) : grad / (x * (T(1) - x));
  }
};

struct logaddexp {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 800;
  template <class T>
  static T call(T a, T b) {
    if constexpr (is_complex_v<T>) {
      const T high = a.re >= b.re ? a : b, low = a.re >= b.re ? b : a;
      if (math::is_inf(high.re) && high == low) return high;
      return high + math::log1p(math::exp(low - high));
    } else {
      return math::logaddexp(a, b) + T(0);  // no negative zero
    }
  }
};
struct logaddexp2 {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 800;
  template <class T>
  static T call(T a, T b) {
    return math::logaddexp2(a, b) + T(0);
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/exp_log.h"

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/powers.h"
#include "ops/elementwise/quotient_rules.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

constexpr double ln2 = 0.6931471805599453, ln10 = 2.302585092994046;

// The loops take a negative eps for none.
template <int Position>
void eps_or_none(const OpCall& c, DType, Scalar* params) {
  const Value& v = c.arg(Position);
  params[0] = v.is_none() ? Scalar(-1.0) : v.as_scalar();
}

std::optional<double> maybe_eps(Backward& b) {
  return b.is_none("eps") ? std::nullopt : std::optional<double>(b.number("eps"));
}

Tensor sigmoid_slope(const Tensor& y) { return ops::mul(y, ops::sub(1, y)); }

// The gradient of grad * conj(slope) in grad is grad times the slope itself.
Tensor through_conj(const Tensor& grad, const Tensor& slope) { return ops::mul(grad, slope); }

Tensor log_denominator(Backward& x) { return x["self"]; }
Tensor log2_denominator(Backward& x) { return ops::mul(x["self"], ln2); }
Tensor log10_denominator(Backward& x) { return ops::mul(x["self"], ln10); }
Tensor log1p_denominator(Backward& x) { return ops::add(x["self"], 1); }

// The derivative of logaddexp by one of its arguments is that argument's share of the sum,
// e^one / (e^one + e^other). These give the inverse of a share, 1 + e^(other - one), by which the
// gradient is divided.
template <auto power>
Tensor inverse_share(const Tensor& one, const Tensor& other) {
  return ops::add(power(ops::sub(other, one)), 1);
}
Tensor share_of_self(Backward& x) { return inverse_share<ops::exp>(x["self"], x["other"]); }
Tensor share_of_other(Backward& x) { return inverse_share<ops::exp>(x["other"], x["self"]); }
Tensor share2_of_self(Backward& x) { return inverse_share<ops::exp2>(x["self"], x["other"]); }
Tensor share2_of_other(Backward& x) { return inverse_share<ops::exp2>(x["other"], x["self"]); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(exp){
    .schema = "exp(Tensor self) -> Tensor",
    .doc = "Exponential of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::exp>,
    .derivatives = {local(
        "self", [](Backward& x) { return x["result"]; }, saves("result"))},
};

OP(exp2){
    .schema = "exp2(Tensor self) -> Tensor",
    .doc = "Two to the power of self, elementwise.",
    .forms = all_forms,
    .aliases = "special_exp2",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::exp2>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::mul(x["result"], ln2); }, saves("result"))},
};

OP(expm1){
    .schema = "expm1(Tensor self) -> Tensor",
    .doc = "Exponential of self less one, elementwise; accurate near zero.",
    .forms = all_forms,
    .aliases = "special_expm1",
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::expm1>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::add(x["result"], 1); }, saves("result"))},
};

OP(log){
    .schema = "log(Tensor self) -> Tensor",
    .doc = "Natural logarithm of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::log>,
    .derivatives = {ops::over<log_denominator>("self", saves("self"))},
};

OP(log2){
    .schema = "log2(Tensor self) -> Tensor",
    .doc = "Logarithm of self to base 2, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::log2>,
    .derivatives = {ops::over<log2_denominator>("self", saves("self"))},
};

OP(log10){
    .schema = "log10(Tensor self) -> Tensor",
    .doc = "Logarithm of self to base 10, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::log10>,
    .derivatives = {ops::over<log10_denominator>("self", saves("self"))},
};

OP(log1p){
    .schema = "log1p(Tensor self) -> Tensor",
    .doc = "Natural logarithm of 1 + self, elementwise; accurate near zero.",
    .forms = all_forms,
    .aliases = "special_log1p",
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::log1p>,
    .derivatives = {ops::over<log1p_denominator>("self", saves("self"))},
};

OP(sigmoid){
    .schema = "sigmoid(Tensor self) -> Tensor",
    .doc = "1 / (1 + exp(-self)), elementwise.",
    .forms = all_forms,
    .aliases = "special_expit",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::sigmoid>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::sigmoid_backward(b.grad(), b["result"]); },
        saves("result"))},
};

OP(sigmoid_backward){
    .schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    .doc = "Gradient of sigmoid from its result: grad_output * output * (1 - output).",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::sigmoid_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) { return through_conj(b.grad(), sigmoid_slope(b["output"])); },
                saves("output")),
            vjp(
                "output",
                [](Backward& b) {
                  const Tensor bend = ops::sub(1, ops::mul(b["output"], 2));
                  return ops::mul(ops::conj(b.grad()), ops::mul(b["grad_output"], ops::conj(bend)));
                },
                saves("grad_output", "output")),
        },
};

OP(logit){
    .schema = "logit(Tensor self, float? eps=None) -> Tensor",
    .doc =
        "log(self / (1 - self)), elementwise; self is first clamped to [eps, 1 - eps] where eps is "
        "given.",
    .forms = all_forms,
    .aliases = "special_logit",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::with_params<eps_or_none<1>>(cpu::unary<scalar::logit>),
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::logit_backward(b.grad(), b["self"], maybe_eps(b)); },
        saves("self"))},
};

OP(logit_backward){
    .schema = "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    .doc = "Gradient of logit; zero where self was clamped, nan outside [0, 1] without eps.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::with_params<eps_or_none<2>>(cpu::binary<scalar::logit_backward>),
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) { return ops::logit_backward(b.grad(), b["self"], maybe_eps(b)); },
                saves("self")),
            vjp(
                "self",
                [](Backward& b) {
                  const Tensor x = b["self"], once = ops::logit_backward(b.grad(), x, maybe_eps(b));
                  const Tensor bend =
                      ops::div(ops::sub(ops::mul(x, 2), 1), ops::mul(x, ops::sub(1, x)));
                  return ops::mul(ops::mul(once, b["grad_output"]), bend);
                },
                saves("grad_output", "self")),
        },
};

OP(logaddexp){
    .schema = "logaddexp(Tensor self, Tensor other) -> Tensor",
    .doc = "log(exp(self) + exp(other)), elementwise, without overflow.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::logaddexp>,
    .derivatives =
        {
            ops::over<share_of_self>("self", saves("self", "other")),
            ops::over<share_of_other>("other", saves("self", "other")),
        },
};

OP(logaddexp2){
    .schema = "logaddexp2(Tensor self, Tensor other) -> Tensor",
    .doc = "log2(2^self + 2^other), elementwise, without overflow.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::logaddexp2>,
    .derivatives =
        {
            ops::over<share2_of_self>("self", saves("self", "other")),
            ops::over<share2_of_other>("other", saves("self", "other")),
        },
};
#endif
