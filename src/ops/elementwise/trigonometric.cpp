// Circular and hyperbolic functions and their inverses.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

// In the range of the short way all elements take it, whoever stands beside them.
struct sin_narrow {
  template <class T>
  static T call(T x) {
    return in_fast_range(x) ? fast_path(x) : math::sin(x);
  }
  static bool in_fast_range(float x) { return math::coarse_trig_in_range(x); }
  static float fast_path(float x) { return math::sin_coarse(x, 0); }
};
struct cos_narrow {
  template <class T>
  static T call(T x) {
    return in_fast_range(x) ? fast_path(x) : math::cos(x);
  }
  static bool in_fast_range(float x) { return math::coarse_trig_in_range(x); }
  static float fast_path(float x) { return math::sin_coarse(x, 1); }
};

struct sin {
  static constexpr unsigned dtypes = floating | complex;
  using Narrow = sin_narrow;
  static constexpr int cost = 600;
  static constexpr Packs packs{4, 2};
  template <class T>
  static T call(T x) {
    return math::sin(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::trig_in_fast_range(x);
  }
  template <class T>
  static T fast_path(T x) {
    return math::sin_fast(x);
  }
};

struct cos {
  static constexpr unsigned dtypes = floating | complex;
  using Narrow = cos_narrow;
  static constexpr int cost = 600;
  static constexpr Packs packs{4, 2};
  template <class T>
  static T call(T x) {
    return math::cos(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::trig_in_fast_range(x);
  }
  template <class T>
  static T fast_path(T x) {
    return math::cos_fast(x);
  }
};

struct tan {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 600;
  static constexpr Packs packs{4, 2};
  template <class T>
  FACULA_SCALAR static T call(T x) {
    return math::tan(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::trig_in_fast_range(x);
  }
  template <class T>
  static T fast_path(T x) {
    return math::tan_fast(x);
  }
};

struct asin {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 650;
  static constexpr Packs packs{2, 2};
  template <class T>
  static T call(T x) {
    return math::asin(x);
  }
};

struct acos {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 650;
  static constexpr Packs packs{2, 2};
  template <class T>
  static T call(T x) {
    return math::acos(x);
  }
};

struct atan {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 900;
  static constexpr Packs packs{4, 2};
  template <class T>
  static T call(T x) {
    return math::atan(x);
  }
};

struct sinh {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 550;
  template <class T>
  static T call(T x) {
    return math::sinh(x);
  }
};

struct cosh {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 350;
  template <class T>
  static T call(T x) {
    return math::cosh(x);
  }
};

struct tanh {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 500;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return math::tanh(x);
  }
};

struct tanh_backward {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T grad, T y) {
    if constexpr (is_complex_v<T>)
      return grad * conj(T(1) - y * y);
    else
      return grad * math::detail::multiply_add(-y, y, T(1));
  }
};

struct asinh {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 900;
  template <class T>
  static T call(T x) {
    return math::asinh(x);
  }
};

struct acosh {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 900;
  template <class T>
  static T call(T x) {
    return math::acosh(x);
  }
};

struct atanh {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 900;
  template <class T>
  static T call(T x) {
    return math::atanh(x);
  }
};

struct sinc {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 700;
  template <class T>
  static T call(T x) {
    return math::sinc(x);
  }
};

struct atan2 {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 900;
  template <class T>
  static T call(T y, T x) {
    return math::atan2(y, x);
  }
};

struct deg2rad {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T x) {
    return x * T(0.017453292519943295);
  }
};

struct rad2deg {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T x) {
    return x * T(57.29577951308232);
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/trigonometric.h"

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/powers.h"
#include "ops/elementwise/quotient_rules.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

constexpr double pi = 3.141592653589793;

Tensor square(const Tensor& x) { return ops::mul(x, x); }
Tensor atan_denominator(Backward& x) { return ops::add(square(x["self"]), 1); }
Tensor atanh_denominator(Backward& x) { return ops::sub(1, square(x["self"])); }

// 1 / sqrt((x - 1) (x + 1)), the square roots apart for complex numbers: the cuts of acosh.
Tensor acosh_slope(const Tensor& x) {
  if (!is_complex(x.dtype())) return ops::rsqrt(ops::sub(square(x), 1));
  return ops::mul(ops::rsqrt(ops::sub(x, 1)), ops::rsqrt(ops::add(x, 1)));
}

Tensor sinc_slope(const Tensor& x) {
  const Tensor angle = ops::mul(x, pi);
  const Tensor slope =
      ops::div(ops::sub(ops::mul(angle, ops::cos(angle)), ops::sin(angle)), ops::mul(angle, x));
  return ops::where(ops::eq(x, 0), 0, slope);
}

// factor / (a^2 + b^2), zero at the origin.
Tensor over_square_sum(const Tensor& factor, const Tensor& a, const Tensor& b) {
  const Tensor sum = ops::add(square(a), square(b));
  return ops::where(ops::eq(sum, 0), 0, ops::div(factor, sum));
}

void meta_real_angle(Meta& m) {
  check_kind(ErrorKind::NotImplemented, !is_complex(m.tensor(0).dtype()), m.op_name(),
             "(): expected a real tensor; got ", name(m.tensor(0).dtype()));
  meta::unary_float(m);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(sin){
    .schema = "sin(Tensor self) -> Tensor",
    .doc = "Sine of self in radians, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::sin>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::cos(x["self"]); }, saves("self"))},
};

OP(cos){
    .schema = "cos(Tensor self) -> Tensor",
    .doc = "Cosine of self in radians, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::cos>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::neg(ops::sin(x["self"])); }, saves("self"))},
};

OP(tan){
    .schema = "tan(Tensor self) -> Tensor",
    .doc = "Tangent of self in radians, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::tan>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::add(square(x["result"]), 1); }, saves("result"))},
};

OP(asin){
    .schema = "asin(Tensor self) -> Tensor",
    .doc = "Inverse sine of self, elementwise, in radians.",
    .forms = all_forms,
    .aliases = "arcsin",
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::asin>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::rsqrt(ops::sub(1, square(x["self"]))); },
        saves("self"))},
};

OP(acos){
    .schema = "acos(Tensor self) -> Tensor",
    .doc = "Inverse cosine of self, elementwise, in radians.",
    .forms = all_forms,
    .aliases = "arccos",
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::acos>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::neg(ops::rsqrt(ops::sub(1, square(x["self"])))); },
        saves("self"))},
};

OP(atan){
    .schema = "atan(Tensor self) -> Tensor",
    .doc = "Inverse tangent of self, elementwise, in radians.",
    .forms = all_forms,
    .aliases = "arctan",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::atan>,
    .derivatives = {ops::over<atan_denominator>("self", saves("self"))},
};

OP(sinh){
    .schema = "sinh(Tensor self) -> Tensor",
    .doc = "Hyperbolic sine of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::sinh>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::cosh(x["self"]); }, saves("self"))},
};

OP(cosh){
    .schema = "cosh(Tensor self) -> Tensor",
    .doc = "Hyperbolic cosine of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::cosh>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::sinh(x["self"]); }, saves("self"))},
};

OP(tanh){
    .schema = "tanh(Tensor self) -> Tensor",
    .doc = "Hyperbolic tangent of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::tanh>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::tanh_backward(b.grad(), b["result"]); },
        saves("result"))},
};

OP(tanh_backward){
    .schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    .doc = "Gradient of tanh from its result: grad_output * (1 - output^2).",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::tanh_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) { return ops::mul(b.grad(), ops::sub(1, square(b["output"]))); },
                saves("output")),
            vjp(
                "output",
                [](Backward& b) {
                  const Tensor bend = ops::mul(b["output"], -2);
                  return ops::mul(ops::conj(b.grad()), ops::mul(b["grad_output"], ops::conj(bend)));
                },
                saves("grad_output", "output")),
        },
};

OP(asinh){
    .schema = "asinh(Tensor self) -> Tensor",
    .doc = "Inverse hyperbolic sine of self, elementwise.",
    .forms = all_forms,
    .aliases = "arcsinh",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::asinh>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::rsqrt(ops::add(square(x["self"]), 1)); },
        saves("self"))},
};

OP(acosh){
    .schema = "acosh(Tensor self) -> Tensor",
    .doc = "Inverse hyperbolic cosine of self, elementwise.",
    .forms = all_forms,
    .aliases = "arccosh",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::acosh>,
    .derivatives = {local(
        "self", [](Backward& x) { return acosh_slope(x["self"]); }, saves("self"))},
};

OP(atanh){
    .schema = "atanh(Tensor self) -> Tensor",
    .doc = "Inverse hyperbolic tangent of self, elementwise.",
    .forms = all_forms,
    .aliases = "arctanh",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::atanh>,
    .derivatives = {ops::over<atanh_denominator>("self", saves("self"))},
};

OP(sinc){
    .schema = "sinc(Tensor self) -> Tensor",
    .doc = "sin(pi self) / (pi self), elementwise; one at zero.",
    .forms = all_forms,
    .aliases = "special_sinc",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::sinc>,
    .derivatives = {local(
        "self", [](Backward& x) { return sinc_slope(x["self"]); }, saves("self"))},
};

OP(atan2){
    .schema = "atan2(Tensor self, Tensor other) -> Tensor",
    .doc = "Angle of the points (other, self) with the positive x axis, elementwise, in radians.",
    .forms = all_forms,
    .aliases = "arctan2",
    .flags = pointwise,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .meta = meta::binary_float,
    .cpu = cpu::binary<scalar::atan2>,
    .derivatives =
        {
            local(
                "self",
                [](Backward& x) { return over_square_sum(x["other"], x["self"], x["other"]); },
                saves("self", "other")),
            local(
                "other",
                [](Backward& x) {
                  return ops::neg(over_square_sum(x["self"], x["self"], x["other"]));
                },
                saves("self", "other")),
        },
};

OP(deg2rad){
    .schema = "deg2rad(Tensor self) -> Tensor",
    .doc = "Degrees to radians, elementwise.",
    .forms = all_forms,
    .flags = pointwise | linear,
    .meta = meta_real_angle,
    .cpu = cpu::unary<scalar::deg2rad>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::deg2rad(b.grad()); })},
};

OP(rad2deg){
    .schema = "rad2deg(Tensor self) -> Tensor",
    .doc = "Radians to degrees, elementwise.",
    .forms = all_forms,
    .flags = pointwise | linear,
    .meta = meta_real_angle,
    .cpu = cpu::unary<scalar::rad2deg>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::rad2deg(b.grad()); })},
};
#endif
