// Rounding.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct ceil {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  template <class T>
  static T call(T x) {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return math::ceil(x);
  }
};

struct floor {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  template <class T>
  static T call(T x) {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return math::floor(x);
  }
};

struct trunc {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  template <class T>
  static T call(T x) {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return math::trunc(x);
  }
};

struct round {
  static constexpr unsigned dtypes = real_numbers | wide_unsigned;
  template <class T>
  static T call(T x) {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return math::round(x);
  }
};

struct frac {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T x) {
    return x - math::trunc(x);
  }
};

struct round_decimals {
  static constexpr unsigned dtypes = floating;
  static constexpr int params = 2;
  template <class T>
  static T call(T x, T power, T negative) {
    return negative != T(0) ? math::round(x / power) * power : math::round(x * power) / power;
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/rounding.h"

#include <cmath>

#include "dispatch/out_dtype.h"
#include "ops/create/creation.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

// Steps have no slope.
Tensor flat(Backward& b) { return ops::zeros_like(b.grad()); }

void power_of_ten(const OpCall& c, DType, Scalar* params) {
  const int64_t decimals = c.arg(1).i;
  params[0] = Scalar(std::pow(10.0, std::abs(static_cast<double>(decimals))));
  params[1] = Scalar(decimals < 0);
}

Tensor special_round(const Tensor& self, int64_t decimals) { return ops::round(self, decimals); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(ceil){
    .schema = "ceil(Tensor self) -> Tensor",
    .doc = "Smallest integer not below self, elementwise.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::ceil>,
    .derivatives = {vjp("self", flat)},
};

OP(floor){
    .schema = "floor(Tensor self) -> Tensor",
    .doc = "Largest integer not above self, elementwise.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::floor>,
    .derivatives = {vjp("self", flat)},
};

OP(trunc){
    .schema = "trunc(Tensor self) -> Tensor",
    .doc = "Integer part of self, elementwise.",
    .forms = all_forms,
    .aliases = "fix",
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::trunc>,
    .derivatives = {vjp("self", flat)},
};

OP(round){
    .schema = "round(Tensor self) -> Tensor",
    .doc = "Nearest integer to self, elementwise; halves go to the even one.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::round>,
    .derivatives = {vjp("self", flat)},
};

OP(round_decimals){
    .schema = "round.decimals(Tensor self, *, int decimals) -> Tensor",
    .doc = "Self rounded to a number of decimals, which may be negative; floating point.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::with_params<power_of_ten>(cpu::unary<scalar::round_decimals>),
    .derivatives = {vjp("self", flat)},
};

OP(special_round){
    .schema = "special_round(Tensor self, *, int decimals=0) -> Tensor",
    .doc = "Self rounded to a number of decimals.",
    .forms = function | out,
    .python_module = "special",
    .composite = Composite::Implicit,
    .any = typed_kernel<special_round>,
};

OP(frac){
    .schema = "frac(Tensor self) -> Tensor",
    .doc = "Fractional part of self, elementwise, with the sign of self.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::frac>,
    .derivatives = {vjp("self", [](Backward& b) { return b.grad(); })},
};
#endif
