// Parts of floating point numbers: signs, exponents, neighbours, and what is not finite.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct copysign {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static T call(T a, T b) {
    return math::copysign(a, b);
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
#include "ops/elementwise/float_parts.h"

#include <cmath>
#include <limits>
#include <tuple>

#include "dispatch/out_dtype.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/loop.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/powers.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

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
  dispatch<FloatingTypes>(out.dtype(), "nextafter_cpu",
                          [&]<class T>(Type<T>) { plan.run(&nextafter_row<T>, nullptr); });
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
  dispatch<FloatingTypes>(self.dtype(), "frexp_cpu",
                          [&]<class T>(Type<T>) { plan.run(&frexp_row<T>, nullptr); });
}

void finite_stand_ins(const OpCall& c, DType compute, Scalar* params) {
  double most = 0;
  // Whole numbers are never replaced.
  std::ignore = visit_floating(real_of(compute), [&]<class T>(Type<T>) {
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

}  // namespace
}  // namespace facula

using namespace facula;

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
    .node = "CopysignBackward0",
    .number_nodes = names("CopysignBackward1"),
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

OP(frexp_Tensor){
    .schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    .doc =
        "Self as mantissa * 2^exponent with a mantissa in [0.5, 1) by magnitude; the exponent is "
        "int32.",
    .forms = function | method | out,
    .out_name = "Tensor_out",
    .flags = exact_out,
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
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::with_params<finite_stand_ins>(cpu::unary<scalar::nan_to_num>),
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::where(ops::isfinite(b["self"]), b.grad(), 0); },
        saves("self"))},
};
#endif
