// Complex numbers: from their parts, their angles, their conjugates. Views that only set a bit are
// in view.cpp.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct conj_physical {
  static constexpr unsigned dtypes = all_kinds;
  template <class T>
  static T call(T a) {
    if constexpr (is_complex_v<T>)
      return T(a.re, -a.im);
    else
      return a;
  }
};

struct angle {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned | complex;
  template <class T>
  static auto call(T x) {
    if constexpr (is_complex_v<T>)
      return math::arg(x);
    else if constexpr (std::is_same_v<T, double>)
      return x != x ? x : (x < 0 ? 3.141592653589793 : 0.0);
    else
      return x != x ? static_cast<float>(x) : (x < T(0) ? 3.1415927f : 0.0f);
  }
};

struct complex_of_parts {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static auto call(T re, T im) {
    return Complex<T>(re, im);
  }
};

struct polar {
  static constexpr unsigned dtypes = floating;
  template <class T>
  static auto call(T size, T angle) {
    return Complex<T>(size * math::cos(angle), size * math::sin(angle));
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/complex/complex.h"

#include "dispatch/out_dtype.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

void meta_angle(Meta& m) {
  const Tensor& self = m.tensor(0);
  const DType d = self.dtype();
  if (!is_complex(d)) return meta::pointwise_result(m, 1, float_of(d), float_of(d));
  m.call.compute = d;
  m.result(0, self.sizes(), real_of(d));  // contiguous, unlike other elementwise results
}
// i z / |z|^2 for complex numbers; real ones have a constant angle on either side of zero.
Tensor angle_gradient(Backward& b) {
  const Tensor z = b["self"];
  if (!is_complex(z.dtype())) return ops::zeros_like(b.grad());
  const Tensor size = ops::abs(z), turned = ops::mul(z, Scalar(complex128(0, 1)));
  const Tensor slope = ops::div(turned, ops::mul(size, size));
  return ops::mul(b.grad(), ops::where(ops::eq(z, 0), 0, slope));
}

void meta_complex(Meta& m) {
  const DType a = m.tensor(0).dtype(), b = m.tensor(1).dtype();
  auto fits = [](DType d) {
    return d == DType::Float16 || d == DType::Float32 || d == DType::Float64;
  };
  check_kind(ErrorKind::NotImplemented, fits(a) && fits(b),
             "complex(): both inputs must be float16, float32 or float64; got ", name(a), " and ",
             name(b));
  check(a == b, "complex(): both inputs must have one dtype; got ", name(a), " and ", name(b));
  const bool into = m.call.op->variant == Variant::Out;
  check(!into || m.tensor(2).dtype() == complex_of(a), "complex(): out= must have dtype ",
        name(complex_of(a)));
  meta::pointwise_result(m, 2, complex_of(a), a);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_conj_physical){
    .schema = "_conj_physical(Tensor self) -> Tensor",
    .doc = "The complex conjugate of every element, in memory of its own.",
    .forms = function_method,
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::conj_physical>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::_conj_physical(b.grad()); })},
};

namespace {
Tensor conj_physical(const Tensor& self) {
  return is_complex(self.dtype()) ? ops::_conj_physical(self) : self;
}
void conj_physical_(const Tensor& self) {
  if (is_complex(self.dtype())) ops::copy_(self, ops::_conj_physical(self));
}
}  // namespace

OP(conj_physical){
    .schema = "conj_physical(Tensor self) -> Tensor",
    .doc = "The complex conjugate of self, computed now; a real tensor is returned as it is.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = same_object | out_follows | exact_out,
    .any = typed_kernel<conj_physical>,
};
OP(conj_physical_){
    .schema = "conj_physical_(Tensor(a!) self) -> Tensor(a!)",
    .doc = "Conjugates self's memory in place; real tensors stay as they are.",
    .forms = function_method,
    .composite = Composite::Explicit,
    .any = typed_kernel<conj_physical_>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::conj_physical(b.grad()); })},
    .node = "ConjPhysicalBackward1",
};

OP(angle){
    .schema = "angle(Tensor self) -> Tensor",
    .doc = "Angle of self with the positive real axis, elementwise, in radians.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_angle,
    .cpu = cpu::unary<scalar::angle>,
    .derivatives = {vjp("self", angle_gradient, saves("self"))},
};

OP(complex){
    .schema = "complex(Tensor real, Tensor imag) -> Tensor",
    .doc = "Complex numbers from their parts, which are of one dtype: float16, float32 or float64.",
    .forms = function | out,
    .flags = pointwise,
    .meta = meta_complex,
    .cpu = cpu::binary<scalar::complex_of_parts>,
    .derivatives =
        {
            vjp("real", [](Backward& b) { return ops::real(b.grad()); }),
            vjp("imag", [](Backward& b) { return ops::imag(b.grad()); }),
        },
};

OP(polar){
    .schema = "polar(Tensor abs, Tensor angle) -> Tensor",
    .doc =
        "Complex numbers from absolute values and angles, which are of one dtype: float16, float32 "
        "or float64.",
    .forms = function | out,
    .flags = pointwise,
    .autocast_cpu = Autocast::Float32,
    .meta = meta_complex,
    .cpu = cpu::binary<scalar::polar>,
    .derivatives =
        {
            vjp(
                "abs",
                [](Backward& b) {
                  return ops::real(ops::mul(b.grad(), ops::conj(ops::sgn(b["result"]))));
                },
                saves("result")),
            vjp(
                "angle",
                [](Backward& b) {
                  return ops::real(ops::mul(
                      b.grad(), ops::conj(ops::mul(b["result"], Scalar(complex128(0, 1))))));
                },
                saves("result")),
        },
};
#endif
