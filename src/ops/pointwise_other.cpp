// Elementwise operators of no other family: bounds, selection, parts of numbers.
#include "kernels/cpu/convert.h"
#include "kernels/cpu/loop.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {
// The first that is nan, else the larger or the smaller.
template <class T>
inline T larger(T a, T b) {
  return a != a ? a : (a > b ? a : b);
}
template <class T>
inline T smaller(T a, T b) {
  return a != a ? a : (a < b ? a : b);
}
struct maximum {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return larger(a, b);
  }
};

struct minimum {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return smaller(a, b);
  }
};

struct fmax {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return a >= b || b != b ? a : b;
  }
};

struct fmin {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return a <= b || b != b ? a : b;
  }
};

struct clamp {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  static constexpr int params = 2;
  template <class T>
  static T call(T x, T low, T high) {
    const T above = x < low ? low : x, within = above > high ? high : above;
    return high != high ? high : within;  // the bounds are both NaN or neither
  }
};

struct hypot {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 250;
  template <class T>
  static T call(T a, T b) {
    return math::hypot(a, b);
  }
};

struct copysign {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T a, T b) {
    return math::copysign(a, b);
  }
};

struct gcd {
  static constexpr unsigned dtypes = integral;
  template <class T>
  static T call(T a, T b) {
    return math::gcd(a, b);
  }
};

struct lcm {
  static constexpr unsigned dtypes = integral;
  template <class T>
  static T call(T a, T b) {
    return math::lcm(a, b);
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
      return math::logaddexp(a, b);
    }
  }
};
struct logaddexp2 {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 800;
  template <class T>
  static T call(T a, T b) {
    return math::logaddexp2(a, b);
  }
};

struct heaviside {
  static constexpr unsigned dtypes = boolean | real_numbers;
  template <class T>
  static T call(T x, T at_zero) {
    return x == T(0) ? at_zero : T(x > T(0));
  }
};

template <class T>
inline T finite_part(T x, T nan, T high, T low) {
  if (x != x) return nan;
  return x == math::detail::infinity<T> ? high : (x == -math::detail::infinity<T> ? low : x);
}
struct nan_to_num {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  static constexpr int params = 3;
  template <class T>
  static T call(T x, T nan, T high, T low) {
    if constexpr (is_complex_v<T>)
      return T(finite_part(x.re, nan.re, high.re, low.re),
               finite_part(x.im, nan.re, high.re, low.re));
    else if constexpr (std::is_floating_point_v<T>)
      return finite_part(x, nan, high, low);
    else
      return x;
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/pointwise_other.h"

#include <cmath>
#include <limits>

#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/exp_log.h"
#include "ops/logical.h"
#include "ops/meta_rules.h"
#include "ops/powers.h"
#include "ops/quotient_rules.h"
#include "ops/view.h"

namespace facula {
namespace {

void meta_ordered(Meta& m) {
  meta::binary(m);
  check_type(!is_complex(m.results[0].dtype), m.op_name(), " not implemented for complex tensors.");
}

// Whole where this side won, half at ties, nothing where it lost.
Tensor winner_gradient(const Tensor& grad, const Tensor& a, const Tensor& b, const Tensor& lost) {
  return ops::where(ops::eq(a, b), ops::div(grad, 2), ops::where(lost, 0, grad));
}

// --- clamp

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
  visit_integral(
      d, [&]<class T>(Type<T>) { s = static_cast<int64_t>(std::numeric_limits<T>::lowest()); });
  return s;
}
// Of uint64 the bits, which read as -1: numbers are at most int64.
Scalar highest(DType d) {
  if (is_floating(d)) return __builtin_inf();
  Scalar s;
  const auto set = [&]<class T>(Type<T>) {
    s = static_cast<int64_t>(std::numeric_limits<T>::max());
  };
  visit_integral(d, set) || visit_types<uint16_t, uint32_t, uint64_t>(d, set);
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

// --- parts of numbers

Tensor copysign_gradient(Backward& b) {
  const Tensor x = b["self"], ratio = ops::div(b["result"], x);
  return ops::where(ops::eq(x, 0), 0, ops::mul(b.grad(), ratio));
}

// The neighbour of a reduced float: its bits, one step away from zero or towards it.
template <class T>
T next_reduced(T a, T b) {
  const float x = a, y = b;
  if (x != x || y != y) return T(x + y);
  if (x == y) return b;
  if (x == 0) return T::from_bits(static_cast<uint16_t>(y > 0 ? 1 : 0x8001));
  return T::from_bits(static_cast<uint16_t>(a.bits + ((x < y) == (x > 0) ? 1 : -1)));
}
template <class T>
void nextafter_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T a = *reinterpret_cast<const T*>(data[1] + i * steps[1]),
            b = *reinterpret_cast<const T*>(data[2] + i * steps[2]);
    T& out = *reinterpret_cast<T*>(data[0] + i * steps[0]);
    if constexpr (std::is_floating_point_v<T>)
      out = std::nextafter(a, b);
    else
      out = next_reduced(a, b);
  }
}
void nextafter(const Tensor& self, const Tensor& other, const Tensor& out) {
  const Tensor a = self.dtype() == out.dtype() ? self : cpu::converted(self, out.dtype());
  const Tensor b = other.dtype() == out.dtype() ? other : cpu::converted(other, out.dtype());
  cpu::LoopPlan plan(out.sizes());
  plan.add(out);
  plan.add(a);
  plan.add(b);
  plan.simplify();
  const bool known =
      visit_floating(out.dtype(), [&]<class T>(Type<T>) { plan.run(&nextafter_row<T>, nullptr); });
  check_kind(ErrorKind::NotImplemented, known, "\"nextafter_cpu\" not implemented for '",
             info(out.dtype()).legacy_name, "'");
}

// One over the part that an argument has in the sum of logaddexp: 1 + e^(the other - it).
template <auto power>
Tensor over_share(const Tensor& one, const Tensor& other) {
  return ops::add(power(ops::sub(other, one)), 1);
}
Tensor share_of_self(Backward& x) { return over_share<ops::exp>(x["self"], x["other"]); }
Tensor share_of_other(Backward& x) { return over_share<ops::exp>(x["other"], x["self"]); }
Tensor share2_of_self(Backward& x) { return over_share<ops::exp2>(x["self"], x["other"]); }
Tensor share2_of_other(Backward& x) { return over_share<ops::exp2>(x["other"], x["self"]); }

void meta_heaviside(Meta& m) {
  check_kind(ErrorKind::NotImplemented,
             !is_complex(m.tensor(0).dtype()) && !is_complex(m.tensor(1).dtype()),
             "heaviside(): inputs must be real; got a complex tensor");
  check(m.tensor(0).dtype() == m.tensor(1).dtype(),
        "heaviside(): input and values must have one dtype; got ", name(m.tensor(0).dtype()),
        " and ", name(m.tensor(1).dtype()));
  meta::binary(m);
}

// Whole exponents do not change the dtype of floats; float64 holds every power that matters.
void meta_frexp(Meta& m, const Tensor& self) {
  check(is_floating(self.dtype()), "frexp(): self must be floating point; got ",
        name(self.dtype()));
  m.result_like(0, self, self.dtype());
  m.result_like(1, self, DType::Int32);
}

template <class T>
void frexp_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    int exponent = 0;
    const T x = *reinterpret_cast<const T*>(data[2] + i * steps[2]);
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = static_cast<T>(std::frexp(x, &exponent));
    *reinterpret_cast<int32_t*>(data[1] + i * steps[1]) = exponent;
  }
}
void frexp(const Tensor& self, const Tensor& mantissa, const Tensor& exponent) {
  cpu::LoopPlan plan(self.sizes());
  plan.add(mantissa);
  plan.add(exponent);
  plan.add(self);
  plan.simplify();
  visit_floating(self.dtype(), [&]<class T>(Type<T>) { plan.run(&frexp_row<T>, nullptr); });
}

void finite_stand_ins(const OpCall& c, DType compute, Scalar* params) {
  double most = 0;
  visit_floating(real_of(compute), [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, Half>)
      most = 65504;
    else if constexpr (std::is_same_v<T, BFloat16>)
      most = static_cast<float>(BFloat16::from_bits(0x7f7f));
    else
      most = std::numeric_limits<T>::max();
  });
  auto given = [&](int i, double otherwise) {
    return c.arg(i).is_none() ? Scalar(otherwise) : c.arg(i).as_scalar();
  };
  params[0] = given(1, 0);
  params[1] = given(2, most);
  params[2] = given(3, -most);
}

// --- where

void meta_where(Meta& m) {
  const DType c = m.tensor(0).dtype();
  check(c == DType::Bool || c == DType::UInt8, "where(): condition must be bool or uint8; got ",
        name(c));
  const DType d = result_type({m.call.args + 1, 2});
  for (int i = 1; i < 3; ++i)
    if (m.arg(i).is_number() && is_integral(d, false)) cpu::check_fits(m.arg(i).as_scalar(), d);
  meta::pointwise_result(m, 3, d, d);
}

template <class T>
void where_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const char* from = data[1][i * steps[1]] != 0 ? data[2] + i * steps[2] : data[3] + i * steps[3];
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = *reinterpret_cast<const T*>(from);
  }
}
void where(const Tensor& condition, const Tensor& self, const Tensor& other, const Tensor& out) {
  const Tensor a = self.dtype() == out.dtype() ? self : cpu::converted(self, out.dtype());
  const Tensor b = other.dtype() == out.dtype() ? other : cpu::converted(other, out.dtype());
  cpu::LoopPlan plan(out.sizes());
  plan.add(out);
  plan.add(condition);
  plan.add(a);
  plan.add(b);
  plan.simplify();
  visit_size(out.itemsize(), [&]<class T>(Type<T>) { plan.run(&where_row<T>, nullptr); });
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(maximum){
    .schema = "maximum(Tensor self, Tensor other) -> Tensor",
    .doc = "Larger of self and other, elementwise; nan where either is.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::maximum>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["other"],
                                         ops::lt(b["self"], b["other"]));
                },
                saves("self", "other")),
            vjp(
                "other",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["other"],
                                         ops::lt(b["other"], b["self"]));
                },
                saves("self", "other")),
        },
};

OP(minimum){
    .schema = "minimum(Tensor self, Tensor other) -> Tensor",
    .doc = "Smaller of self and other, elementwise; nan where either is.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::minimum>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["other"],
                                         ops::gt(b["self"], b["other"]));
                },
                saves("self", "other")),
            vjp(
                "other",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["other"],
                                         ops::gt(b["other"], b["self"]));
                },
                saves("self", "other")),
        },
};

OP(fmax){
    .schema = "fmax(Tensor self, Tensor other) -> Tensor",
    .doc = "Larger of self and other, elementwise; the other one where one is nan.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::fmax>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  const Tensor won =
                      ops::logical_or(ops::gt(b["self"], b["other"]), ops::isnan(b["other"]));
                  return winner_gradient(b.grad(), b["self"], b["other"], ops::logical_not(won));
                },
                saves("self", "other")),
            vjp(
                "other",
                [](Backward& b) {
                  const Tensor lost =
                      ops::logical_or(ops::gt(b["self"], b["other"]), ops::isnan(b["other"]));
                  return winner_gradient(b.grad(), b["self"], b["other"], lost);
                },
                saves("self", "other")),
        },
};

OP(fmin){
    .schema = "fmin(Tensor self, Tensor other) -> Tensor",
    .doc = "Smaller of self and other, elementwise; the other one where one is nan.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::fmin>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  const Tensor won =
                      ops::logical_or(ops::lt(b["self"], b["other"]), ops::isnan(b["other"]));
                  return winner_gradient(b.grad(), b["self"], b["other"], ops::logical_not(won));
                },
                saves("self", "other")),
            vjp(
                "other",
                [](Backward& b) {
                  const Tensor lost =
                      ops::logical_or(ops::lt(b["self"], b["other"]), ops::isnan(b["other"]));
                  return winner_gradient(b.grad(), b["self"], b["other"], lost);
                },
                saves("self", "other")),
        },
};

OP(clamp){
    .schema = "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    .doc = "Self brought into [min, max], elementwise; a bound that is None does not bind.",
    .forms = all_forms,
    .aliases = "clip",
    .flags = pointwise,
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
    .flags = pointwise,
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
    .cpu = cpu::binary<scalar::maximum>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["min"],
                                         ops::lt(b["self"], b["min"]));
                },
                saves("self", "min")),
            vjp(
                "min",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["min"],
                                         ops::lt(b["min"], b["self"]));
                },
                saves("self", "min")),
        },
    .node = "ClampMinBackward1",
};

OP(clamp_max){
    .schema = "clamp_max(Tensor self, Scalar max) -> Tensor",
    .doc = "Self, but max where it is larger, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
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
    .cpu = cpu::binary<scalar::minimum>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["max"],
                                         ops::gt(b["self"], b["max"]));
                },
                saves("self", "max")),
            vjp(
                "max",
                [](Backward& b) {
                  return winner_gradient(b.grad(), b["self"], b["max"],
                                         ops::gt(b["max"], b["self"]));
                },
                saves("self", "max")),
        },
    .node = "ClampMaxBackward1",
};

OP(hypot){
    .schema = "hypot(Tensor self, Tensor other) -> Tensor",
    .doc = "Square root of the sum of the squares of self and other, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::hypot>,
    .derivatives =
        {
            local(
                "self", [](Backward& x) { return ops::div(x["self"], x["result"]); },
                saves("self", "result")),
            local(
                "other", [](Backward& x) { return ops::div(x["other"], x["result"]); },
                saves("other", "result")),
        },
};

OP(copysign_Tensor){
    .schema = "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Magnitude of self with the sign of other, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::binary_float,
    .cpu = cpu::binary<scalar::copysign>,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return copysign_gradient(b); }, saves("self", "result")),
            vjp("other", [](Backward& b) { return ops::zeros_like(b.grad()); }),
        },
    .node = ",CopysignBackward0,CopysignBackward1",
};

OP(nextafter){
    .schema = "nextafter(Tensor self, Tensor other) -> Tensor",
    .doc = "Next floating point number after self towards other, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = typed_kernel<nextafter>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) { return ops::where(ops::ne(b["self"], b["other"]), b.grad(), 0); },
                saves("self", "other")),
            vjp("other", [](Backward& b) { return ops::zeros_like(b.grad()); }),
        },
};

OP(gcd){
    .schema = "gcd(Tensor self, Tensor other) -> Tensor",
    .doc = "Greatest common divisor of self and other, elementwise; integers, not negative.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::gcd>,
};

OP(lcm){
    .schema = "lcm(Tensor self, Tensor other) -> Tensor",
    .doc = "Least common multiple of self and other, elementwise; integers, not negative.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::lcm>,
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

OP(heaviside){
    .schema = "heaviside(Tensor self, Tensor values) -> Tensor",
    .doc = "0 where self is negative, 1 where it is positive, values where it is zero.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta_heaviside,
    .cpu = cpu::binary<scalar::heaviside>,
};

OP(frexp_Tensor){
    .schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    .doc =
        "Self as mantissa * 2^exponent with a mantissa in [0.5, 1) by magnitude; the exponent is "
        "int32.",
    .forms = function | method | out,
    .out_name = "Tensor_out",
    .meta = typed_meta<meta_frexp>,
    .cpu = typed_kernel<frexp>,
    .derivatives = {vjp(
        names("self"),
        [](Backward& b) {
          if (b.grad(0).defined())
            b.set("self", ops::mul(b.grad(0), ops::pow(2.0, ops::neg(b.result(1)))));
        },
        saves("exponent"))},
    .not_differentiable = names("exponent"),
    .batch = batch::pointwise,
};

OP(nan_to_num){
    .schema =
        "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> "
        "Tensor",
    .doc = "Self with nan and infinities replaced; by default by 0 and the largest finite numbers.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::with_params<finite_stand_ins>(cpu::unary<scalar::nan_to_num>),
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::where(ops::isfinite(b["self"]), b.grad(), 0); },
        saves("self"))},
};

OP(where_self){
    .schema = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    .doc = "Self where condition is true, else other, elementwise; all three broadcast.",
    .forms = function | method | out,
    .out_name = "self_out",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta_where,
    .cpu = typed_kernel<where>,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return ops::where(b["condition"], b.grad(), 0); },
                saves("condition")),
            vjp(
                "other", [](Backward& b) { return ops::where(b["condition"], 0, b.grad()); },
                saves("condition")),
        },
};
#endif
