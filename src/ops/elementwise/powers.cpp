// Powers and roots.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct pow {
  static constexpr unsigned dtypes = numbers;
  static constexpr int cost = 1000;
  static constexpr Packs packs{2, 2};
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return math::int_pow(a, b);
    else
      return math::pow(a, b);
  }
};

struct square {
  static constexpr unsigned dtypes = numbers;
  template <class T>
  static T call(T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
    else
      return x * x;
  }
};

struct one {
  static constexpr unsigned dtypes = complex;
  template <class T>
  static T call(T) {
    return T(1);
  }
};
struct cube {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T x) {
    return x * x * x;
  }
};

struct inverse {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T x) {
    return T(1) / x;
  }
};

struct inverse_square {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T x) {
    return T(1) / (x * x);
  }
};

struct sqrt {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    if constexpr (math::is_pack<T>) return sqrt_by_steps(x);
    return math::sqrt(x);
  }
};

struct rsqrt {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    if constexpr (math::is_pack<T>) return T(1) / sqrt_by_steps(x);
    return math::rsqrt(x);
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

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/powers.h"

#include <cmath>

#include <numbers>

#include "dispatch/out_dtype.h"
#include "ops/complex/complex.h"
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

// Exponents that have a shorter way, in the order of their loops.
int power_case(const OpCall& c) {
  const Value& e = c.arg(1);
  if (!e.is_number() || !is_differentiable(c.compute)) return 0;
  if (is_complex(c.compute) && e.as_scalar().equals(0)) return 7;
  static constexpr double known[] = {2, 3, 0.5, -0.5, -1, -2};
  for (int i = 0; i < 6; ++i)
    if (e.as_scalar().equals(known[i])) return i + 1;
  return 0;
}

constexpr KernelRef general = cpu::binary<scalar::pow>;
constexpr KernelRef second = cpu::unary<scalar::square>;
constexpr KernelRef third = cpu::unary<scalar::cube>;
constexpr KernelRef root = cpu::unary<scalar::sqrt>;
constexpr KernelRef inverse_root = cpu::unary<scalar::rsqrt>;
constexpr KernelRef inverse_first = cpu::unary<scalar::inverse>;
constexpr KernelRef inverse_second = cpu::unary<scalar::inverse_square>;
constexpr KernelRef ones = cpu::unary<scalar::one>;
constexpr KernelRef power = cpu::chosen<power_case, general, second, third, root, inverse_root,
                                        inverse_first, inverse_second, ones>;

void meta_pow(Meta& m) {
  meta::not_two_numbers(m);
  meta::binary(m);
  const Value& e = m.arg(1);
  if (e.is_number()) cpu::check_fits(e.as_scalar(), m.results[0].dtype);
  const bool negative = e.tag == Tag::Int && e.i < 0;
  check(!negative || !is_integral(m.results[0].dtype, true),
        "pow(): an integer has no power to a negative integer; use floating point");
}

void meta_float_power(Meta& m) {
  meta::not_two_numbers(m);
  const DType common = result_type({m.call.args, 2});
  const DType wide = is_complex(common) ? DType::Complex128 : DType::Float64;
  const bool in_place = m.call.op->variant == Variant::Inplace;
  const DType own = in_place ? m.tensor(0).dtype() : wide;
  check(own == wide, "float_power_(): self must have the result's dtype, ", name(wide), "; got ",
        name(own));
  meta::pointwise_result(m, 2, wide, wide);
}

// Integers are squared as integers, bool as int64.
void meta_square(Meta& m) {
  const DType own = m.tensor(0).dtype(), d = own == DType::Bool ? DType::Int64 : own;
  meta::pointwise_result(m, 1, d, d);
}

// exponent * base^(exponent - 1), zero where the exponent is zero.
Tensor base_slope(Backward& x) {
  const Tensor base = x["self"];
  if (x.is_number("exponent")) {
    const Scalar e = x.scalar("exponent");
    if (e.equals(0)) return ops::zeros_like(base);
    if (e.equals(2)) return ops::mul(base, 2);
    // The least integer has none below it, and as a double it is its own neighbour.
    const bool whole = e.is_integral() && e.to<int64_t>() != INT64_MIN;
    const Scalar less = e.is_complex()
                            ? Scalar(e.to<complex128>() - complex128(1))
                            : (whole ? Scalar(e.to<int64_t>() - 1) : Scalar(e.to<double>() - 1));
    return ops::mul(ops::pow(base, less), e);
  }
  const Tensor e = x["exponent"];
  return ops::where(ops::eq(e, 0), 0, ops::mul(e, ops::pow(base, ops::sub(e, 1))));
}

// result * log(base), zero where the base is zero and the exponent is not negative.
Tensor exponent_slope(Backward& x) {
  const Tensor e = x["exponent"], result = x["result"];
  const Tensor at_zero = is_complex(e.dtype()) ? ops::ge(ops::real(e), 0) : ops::ge(e, 0);
  if (x.is_number("self")) {
    const Scalar base = x.scalar("self");
    if (base.equals(0)) return ops::where(at_zero, 0, ops::mul(result, -__builtin_inf()));
    // As a number it is not rounded to the result's dtype.
    if (!is_complex(result.dtype())) return ops::mul(result, std::log(base.to<double>()));
    return ops::mul(result, ops::log(ops::scalar_tensor(base, result.dtype())));
  }
  const Tensor base = x["self"];
  const Tensor zero = ops::logical_and(ops::eq(base, 0), at_zero);
  return ops::where(zero, 0, ops::mul(result, ops::log(base)));
}

Tensor ldexp(const Tensor& self, const Tensor& other) {
  if (!is_integral(other.dtype(), true) || is_complex(self.dtype()))
    return ops::mul(self, ops::pow(2.0, other));
  const Tensor wide =
      ops::mul(ops::to(self, DType::Float64), ops::pow(2.0, ops::to(other, DType::Float64)));
  return ops::to(wide, float_of(self.dtype()));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(pow_Tensor_Tensor){
    .schema = "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    .doc = "Self to the power of exponent, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .numbers = names("self", "exponent"),
    .meta = meta_pow,
    .cpu = power,
    .derivatives =
        {
            local("self", base_slope, saves("self", "exponent")),
            local("exponent", exponent_slope, saves("self", "exponent", "result")),
        },
    .node = "PowBackward1",
    .number_nodes = names("PowBackward2", "PowBackward0"),
};

OP(float_power_Tensor_Tensor){
    .schema = "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    .doc = "Self to the power of exponent, elementwise, computed in float64 or complex128.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .numbers = names("self", "exponent"),
    .meta = meta_float_power,
    .cpu = power,
    .derivatives =
        {
            local("self", base_slope, saves("self", "exponent")),
            local("exponent", exponent_slope, saves("self", "exponent", "result")),
        },
    .node = "PowBackward1",
    .number_nodes = names("PowBackward2", "PowBackward0"),
};

OP(ldexp_Tensor){
    .schema = "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "self * 2^other, elementwise.",
    .forms = all_forms,
    .composite = Composite::Explicit,
    .any = typed_kernel<ldexp>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return ops::mul(b.grad(), ops::conj(ops::pow(2.0, b["other"])));
                },
                saves("other")),
            vjp(
                "other",
                [](Backward& b) {
                  const Tensor slope = ops::mul(b["result"], std::numbers::ln2);
                  return ops::mul(b.grad(), ops::conj(slope));
                },
                saves("result")),
        },
};

OP(square){
    .schema = "square(Tensor self) -> Tensor",
    .doc = "Square of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta_square,
    .cpu = cpu::unary<scalar::square>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::mul(x["self"], 2); }, saves("self"))},
    .node = "PowBackward0",
};

OP(sqrt){
    .schema = "sqrt(Tensor self) -> Tensor",
    .doc = "Square root of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::sqrt>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::div(b.grad(), ops::mul(ops::conj(b["result"]), 2)); },
        saves("result"))},
};

OP(rsqrt){
    .schema = "rsqrt(Tensor self) -> Tensor",
    .doc = "One over the square root of self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::rsqrt>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::mul(ops::pow(x["result"], 3), -0.5); },
        saves("result"))},
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
#endif
