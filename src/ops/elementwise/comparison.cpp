// Comparisons and tests of elements.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct eq {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  template <class T>
  static bool call(T a, T b) {
    return a == b;
  }
};

struct ne {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  template <class T>
  static bool call(T a, T b) {
    return !(a == b);
  }
};

struct lt {
  static constexpr unsigned dtypes = boolean | real_numbers;
  template <class T>
  static bool call(T a, T b) {
    return a < b;
  }
};

struct le {
  static constexpr unsigned dtypes = boolean | real_numbers;
  template <class T>
  static bool call(T a, T b) {
    return a <= b;
  }
};

struct gt {
  static constexpr unsigned dtypes = boolean | real_numbers;
  template <class T>
  static bool call(T a, T b) {
    return a > b;
  }
};

struct ge {
  static constexpr unsigned dtypes = boolean | real_numbers;
  template <class T>
  static bool call(T a, T b) {
    return a >= b;
  }
};

struct isnan {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  template <class T>
  static bool call(T x) {
    if constexpr (is_complex_v<T>)
      return x.re != x.re || x.im != x.im;
    else
      return x != x;
  }
};

struct isinf {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  template <class T>
  static bool call(T x) {
    if constexpr (is_complex_v<T>)
      return math::is_inf(x.re) || math::is_inf(x.im);
    else if constexpr (std::is_floating_point_v<T>)
      return math::is_inf(x);
    else
      return false;
  }
};

struct isfinite {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  template <class T>
  static bool call(T x) {
    if constexpr (is_complex_v<T>)
      return math::is_finite(x.re) && math::is_finite(x.im);
    else if constexpr (std::is_floating_point_v<T>)
      return math::is_finite(x);
    else
      return true;
  }
};

struct isreal {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  template <class T>
  static bool call(T x) {
    if constexpr (is_complex_v<T>)
      return x.im == 0;
    else
      return true;
  }
};

struct isposinf {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static bool call(T x) {
    if constexpr (std::is_floating_point_v<T>)
      return x == math::detail::infinity<T>;
    else
      return false;
  }
};

struct isneginf {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static bool call(T x) {
    if constexpr (std::is_floating_point_v<T>)
      return x == -math::detail::infinity<T>;
    else
      return false;
  }
};

struct heaviside {
  static constexpr unsigned dtypes = boolean | real_numbers;
  template <class T>
  static T call(T x, T at_zero) {
    return x == T(0) ? at_zero : T(x > T(0));
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/comparison.h"

#include "dispatch/out_dtype.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/logical.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"

namespace facula {
namespace {

void meta_signed_infinity(Meta& m) {
  check_type(!is_complex(m.tensor(0).dtype()), m.op_name(), " does not support complex inputs.");
  meta::unary_bool(m);
}

bool all_true(const Tensor& mask) {
  const Tensor flat = cpu::contiguous_values(mask);
  const bool* p = flat.data<bool>();
  bool all = true;
  for (int64_t i = 0; i < flat.numel(); ++i) all &= p[i];
  return all;
}

void check_tolerances(double rtol, double atol) {
  check(rtol >= 0, "rtol must not be negative; got ", rtol);
  check(atol >= 0, "atol must not be negative; got ", atol);
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  check(self.dtype() == other.dtype(), info(self.dtype()).legacy_name, " did not match ",
        info(other.dtype()).legacy_name);
  check_tolerances(rtol, atol);
  Tensor close = ops::eq(self, other);
  if (equal_nan && is_differentiable(self.dtype()))
    close = ops::logical_or(close, ops::logical_and(ops::isnan(self), ops::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  const bool whole = is_integral(self.dtype(), true);
  const Tensor a = whole ? ops::to(self, default_dtype()) : self;
  const Tensor b = whole ? ops::to(other, default_dtype()) : other;
  const Tensor allowed = ops::add(ops::abs(ops::mul(b, rtol)), atol);
  const Tensor actual = ops::abs(ops::sub(a, b));
  return ops::logical_or(close, ops::logical_and(ops::isfinite(actual), ops::le(actual, allowed)));
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return ops::item(ops::all(ops::isclose(self, other, rtol, atol, equal_nan), std::nullopt))
      .to<bool>();
}

bool equal(const Tensor& self, const Tensor& other) {
  if (!same_sizes(self.sizes(), other.sizes())) return false;
  return all_true(ops::eq(self, other));
}

// Of the in-place variants, which put zeros and ones where there was a history.
Tensor flat(Backward& b) { return ops::zeros_like(b.grad()); }

bool is_nonzero(const Tensor& self) {
  check(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  check(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  return !ops::item(self).equals(0);
}

void meta_heaviside(Meta& m) {
  check_kind(ErrorKind::NotImplemented,
             !is_complex(m.tensor(0).dtype()) && !is_complex(m.tensor(1).dtype()),
             "heaviside(): inputs must be real; got a complex tensor");
  check(m.tensor(0).dtype() == m.tensor(1).dtype(),
        "heaviside(): input and values must have one dtype; got ", name(m.tensor(0).dtype()),
        " and ", name(m.tensor(1).dtype()));
  meta::binary(m);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(eq_Tensor){
    .schema = "eq.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether self is equal to other, elementwise; a bool tensor.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::equality,
    .cpu = cpu::binary<scalar::eq>,
    .derivatives = {vjp("self", flat), vjp("other", flat)},
    .node = "EqBackward1",
    .not_differentiable = names("result"),
    .number_nodes = names("EqBackward0"),
};

OP(ne_Tensor){
    .schema = "ne.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether self is different from other, elementwise; a bool tensor.",
    .forms = all_forms,
    .aliases = "not_equal",
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::equality,
    .cpu = cpu::binary<scalar::ne>,
    .derivatives = {vjp("self", flat), vjp("other", flat)},
    .node = "NeBackward1",
    .not_differentiable = names("result"),
    .number_nodes = names("NeBackward0"),
};

OP(lt_Tensor){
    .schema = "lt.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether self is less than other, elementwise; a bool tensor.",
    .forms = all_forms,
    .aliases = "less",
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::compare,
    .cpu = cpu::binary<scalar::lt>,
    .derivatives = {vjp("self", flat), vjp("other", flat)},
    .node = "LtBackward1",
    .not_differentiable = names("result"),
    .number_nodes = names("LtBackward0"),
};

OP(le_Tensor){
    .schema = "le.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether self is less or equal (<=) other, elementwise; a bool tensor.",
    .forms = all_forms,
    .aliases = "less_equal",
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::compare,
    .cpu = cpu::binary<scalar::le>,
    .derivatives = {vjp("self", flat), vjp("other", flat)},
    .node = "LeBackward1",
    .not_differentiable = names("result"),
    .number_nodes = names("LeBackward0"),
};

OP(gt_Tensor){
    .schema = "gt.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether self is greater than other, elementwise; a bool tensor.",
    .forms = all_forms,
    .aliases = "greater",
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::compare,
    .cpu = cpu::binary<scalar::gt>,
    .derivatives = {vjp("self", flat), vjp("other", flat)},
    .node = "GtBackward1",
    .not_differentiable = names("result"),
    .number_nodes = names("GtBackward0"),
};

OP(ge_Tensor){
    .schema = "ge.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether self is greater or equal (>=) other, elementwise; a bool tensor.",
    .forms = all_forms,
    .aliases = "greater_equal",
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::compare,
    .cpu = cpu::binary<scalar::ge>,
    .derivatives = {vjp("self", flat), vjp("other", flat)},
    .node = "GeBackward1",
    .not_differentiable = names("result"),
    .number_nodes = names("GeBackward0"),
};

OP(isnan){
    .schema = "isnan(Tensor self) -> Tensor",
    .doc = "Whether each element is not a number; a bool tensor.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta::value_test,
    .cpu = cpu::unary<scalar::isnan>,
};

OP(isinf){
    .schema = "isinf(Tensor self) -> Tensor",
    .doc = "Whether each element is infinite; a bool tensor.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta::value_test,
    .cpu = cpu::unary<scalar::isinf>,
};

OP(isfinite){
    .schema = "isfinite(Tensor self) -> Tensor",
    .doc = "Whether each element is finite: neither infinite nor nan; a bool tensor.",
    .forms = function_method,
    .flags = pointwise,
    .meta = meta::value_test,
    .cpu = cpu::unary<scalar::isfinite>,
};

OP(isreal){
    .schema = "isreal(Tensor self) -> Tensor",
    .doc = "Whether each element is real: with a zero imaginary part; a bool tensor.",
    .forms = function_method,
    .flags = pointwise,
    .meta = meta::value_test,
    .cpu = cpu::unary<scalar::isreal>,
};

OP(isposinf){
    .schema = "isposinf(Tensor self) -> Tensor",
    .doc = "Whether each element is positive infinity; a bool tensor.",
    .forms = function | method | out,
    .flags = pointwise | exact_out,
    .meta = meta_signed_infinity,
    .cpu = cpu::unary<scalar::isposinf>,
};

OP(isneginf){
    .schema = "isneginf(Tensor self) -> Tensor",
    .doc = "Whether each element is negative infinity; a bool tensor.",
    .forms = function | method | out,
    .flags = pointwise | exact_out,
    .meta = meta_signed_infinity,
    .cpu = cpu::unary<scalar::isneginf>,
};

OP(isclose){
    .schema =
        "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
        "equal_nan=False) -> Tensor",
    .doc =
        "Whether |self - other| <= atol + rtol * |other|, elementwise; equal infinities are close.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<isclose>,
};

OP(allclose){
    .schema =
        "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
        "equal_nan=False) -> bool",
    .doc = "Whether every element of self is close to that of other, as isclose has it.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<allclose>,
};

OP(equal){
    .schema = "equal(Tensor self, Tensor other) -> bool",
    .doc = "Whether self and other have the same sizes and elements.",
    .forms = function_method,
    .flags = shape_from_data,
    .cpu = typed_kernel<equal>,
    .hole = "vmap: a number in Python cannot stand for a batch",
};

OP(is_nonzero){
    .schema = "is_nonzero(Tensor self) -> bool",
    .doc = "Whether the one element of self is not zero.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<is_nonzero>,
};

OP(heaviside){
    .schema = "heaviside(Tensor self, Tensor values) -> Tensor",
    .doc = "0 where self is negative, 1 where it is positive, values where it is zero.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta_heaviside,
    .cpu = cpu::binary<scalar::heaviside>,
    .hole = "derivatives: PyTorch has none either; the result is a step function",
};
#endif
