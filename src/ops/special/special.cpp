// Special functions of one argument.
#include "kernels/scalar/special.h"
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct erf_narrow {
  static constexpr Packs packs{4, 0};
  template <class T>
  static T call(T x) {
    return math::erf_coarse(x);
  }
};

struct erf {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 550;
  using Narrow = erf_narrow;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return math::erf(x);
  }
};

struct erfc {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1300;
  static constexpr Packs packs{4, 4};
  template <class T>
  FACULA_SCALAR static T call(T x) {
    return math::erfc(x);
  }
};

struct erfinv {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1000;
  static constexpr Packs packs{2, 4};
  template <class T>
  FACULA_SCALAR static T call(T x) {
    return math::erfinv(x);
  }
};

struct lgamma {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 3500;
  template <class T>
  static T call(T x) {
    return math::lgamma(x);
  }
};

struct digamma {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1100;
  template <class T>
  static T call(T x) {
    return math::digamma(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::detail::digamma_in_fast_range(x);
  }
  template <class T>
  static T fast_path(T x) {
    return math::detail::digamma_fast(x);
  }
};

struct i0 {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1500;
  template <class T>
  static T call(T x) {
    return math::i0(x);
  }
};

struct i0e {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1500;
  template <class T>
  static T call(T x) {
    return math::i0e(x);
  }
};

struct i1 {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1500;
  template <class T>
  static T call(T x) {
    return math::i1(x);
  }
};

struct i1e {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1500;
  template <class T>
  static T call(T x) {
    return math::i1e(x);
  }
};

struct erfcx {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 1400;
  template <class T>
  static T call(T x) {
    return math::erfcx(x);
  }
};

struct ndtr {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 1300;
  static constexpr Packs packs{4, 4};
  template <class T>
  FACULA_SCALAR static T call(T x) {
    return math::ndtr(x);
  }
};

struct ndtri {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 3000;
  template <class T>
  static T call(T x) {
    return math::ndtri(x);
  }
};

struct log_ndtr {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 4000;
  template <class T>
  static T call(T x) {
    return math::log_ndtr(x);
  }
};

struct entr {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 400;
  template <class T>
  static T call(T x) {
    return math::entr(x);
  }
};

// Of the first kind (J) and the second (Y).
template <int order, bool second_kind>
struct bessel {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 3000;
  template <class T>
  static T call(T x) {
    return math::detail::bessel<order, second_kind>(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::detail::bessel_in_fast_range<order, second_kind>(x);
  }
  template <class T>
  static T fast_path(T x) {
    return static_cast<T>(math::detail::bessel_fast<T, order, second_kind>(x));
  }
};
struct bessel_j0 : bessel<0, false> {};

struct bessel_j1 : bessel<1, false> {};

struct bessel_y0 : bessel<0, true> {};

struct bessel_y1 : bessel<1, true> {};

// Under their second names, for float32 and float64 alone.
struct modified_bessel_i0 {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 2000;
  template <class T>
  static T call(T x) {
    return math::i0(x);
  }
};
struct modified_bessel_i1 {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 2000;
  template <class T>
  static T call(T x) {
    return math::i1(x);
  }
};

// Of the second kind (K), times e^x where it is scaled.
template <int order, bool scaled>
struct modified_bessel {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 3000;
  template <class T>
  static T call(T x) {
    return math::detail::modified_k<order, scaled>(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::detail::modified_k_in_fast_range(x);
  }
  template <class T>
  static T fast_path(T x) {
    return static_cast<T>(math::detail::modified_k_fast<T, order, scaled>(x));
  }
};
struct modified_bessel_k0 : modified_bessel<0, false> {};
struct modified_bessel_k1 : modified_bessel<1, false> {};
struct scaled_modified_bessel_k0 : modified_bessel<0, true> {};
struct scaled_modified_bessel_k1 : modified_bessel<1, true> {};

struct spherical_bessel_j0 {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 1000;
  template <class T>
  static T call(T x) {
    return math::spherical_bessel_j0(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::trig_in_fast_range(x);
  }
  template <class T>
  static T fast_path(T x) {
    return math::spherical_bessel_j0_fast(x);
  }
};

struct airy_ai {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 2300;
  template <class T>
  static T call(T x) {
    return math::airy_ai(x);
  }
  template <class T>
  static bool in_fast_range(T x) {
    return math::detail::airy_in_fast_range(x);
  }
  template <class T>
  static T fast_path(T x) {
    return static_cast<T>(math::detail::airy_fast<T>(x));
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/special/special.h"

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/powers.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/special/binary.h"

namespace facula {
namespace {

constexpr double two_over_root_pi = 1.1283791670955126;

Tensor normal_density(const Tensor& x) {
  return ops::mul(ops::exp(ops::mul(ops::square(x), -0.5)), 0.3989422804014327);
}
Tensor log_ndtr_slope(const Tensor& x) {
  return ops::div(0.7978845608028654, ops::special_erfcx(ops::mul(x, -0.7071067811865476)));
}

// order_zero - order_one / x, one half at zero.
Tensor first_order_slope(const Tensor& order_zero, const Tensor& order_one, const Tensor& x) {
  return ops::where(ops::eq(x, 0), 0.5, ops::sub(order_zero, ops::div(order_one, x)));
}
Tensor second_kind_slope(const Tensor& y0, const Tensor& y1, const Tensor& x) {
  return ops::sub(y0, ops::div(y1, x));
}
Tensor scaled_i1_slope(const Tensor& x, const Tensor& i1e) {
  const Tensor slope =
      ops::sub(ops::special_i0e(x), ops::mul(i1e, ops::add(ops::sgn(x), ops::reciprocal(x))));
  return ops::where(ops::eq(x, 0), 0.5, slope);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(erf){
    .schema = "erf(Tensor self) -> Tensor",
    .doc = "Error function of self, elementwise.",
    .forms = all_forms,
    .aliases = "special_erf",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::erf>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return ops::mul(ops::exp(ops::neg(ops::square(x["self"]))), two_over_root_pi);
        },
        saves("self"))},
};

OP(erfc){
    .schema = "erfc(Tensor self) -> Tensor",
    .doc = "One less the error function of self, elementwise, accurate where that is near one.",
    .forms = all_forms,
    .aliases = "special_erfc",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::erfc>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return ops::mul(ops::exp(ops::neg(ops::square(x["self"]))), -two_over_root_pi);
        },
        saves("self"))},
};

OP(erfinv){
    .schema = "erfinv(Tensor self) -> Tensor",
    .doc = "Inverse of the error function, elementwise.",
    .forms = all_forms,
    .aliases = "special_erfinv",
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::erfinv>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return ops::mul(ops::exp(ops::square(x["result"])), 1 / two_over_root_pi);
        },
        saves("result"))},
};

OP(lgamma){
    .schema = "lgamma(Tensor self) -> Tensor",
    .doc = "Logarithm of the absolute value of the gamma function, elementwise.",
    .forms = all_forms,
    .aliases = "special_gammaln",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::lgamma>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::digamma(x["self"]); }, saves("self"))},
};

OP(digamma){
    .schema = "digamma(Tensor self) -> Tensor",
    .doc = "Logarithmic derivative of the gamma function, elementwise.",
    .forms = all_forms,
    .aliases = "special_digamma,special_psi",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::digamma>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::polygamma(1, x["self"]); }, saves("self"))},
};

OP(i0){
    .schema = "i0(Tensor self) -> Tensor",
    .doc = "Modified Bessel function of the first kind, order 0, elementwise.",
    .forms = all_forms,
    .aliases = "special_i0",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::i0>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::special_i1(x["self"]); }, saves("self"))},
};

OP(special_i0e){
    .schema = "special_i0e(Tensor self) -> Tensor",
    .doc = "exp(-|self|) times the modified Bessel function of the first kind, order 0.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::i0e>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return ops::sub(ops::special_i1e(x["self"]), ops::mul(ops::sgn(x["self"]), x["result"]));
        },
        saves("self", "result"))},
};

OP(special_i1){
    .schema = "special_i1(Tensor self) -> Tensor",
    .doc = "Modified Bessel function of the first kind, order 1, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::i1>,
    .derivatives = {local(
        "self",
        [](Backward& x) { return first_order_slope(ops::i0(x["self"]), x["result"], x["self"]); },
        saves("self", "result"))},
};

OP(special_i1e){
    .schema = "special_i1e(Tensor self) -> Tensor",
    .doc = "exp(-|self|) times the modified Bessel function of the first kind, order 1.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::i1e>,
    .derivatives = {local(
        "self", [](Backward& x) { return scaled_i1_slope(x["self"], x["result"]); },
        saves("self", "result"))},
};

OP(special_erfcx){
    .schema = "special_erfcx(Tensor self) -> Tensor",
    .doc = "exp(self^2) erfc(self), elementwise, without overflow.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::erfcx>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return ops::sub(ops::mul(ops::mul(x["self"], x["result"]), 2), two_over_root_pi);
        },
        saves("self", "result"))},
};

OP(special_ndtr){
    .schema = "special_ndtr(Tensor self) -> Tensor",
    .doc = "P(normal <= self): the distribution function of the standard normal distribution.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::ndtr>,
    .derivatives = {local(
        "self", [](Backward& x) { return normal_density(x["self"]); }, saves("self"))},
};

OP(special_ndtri){
    .schema = "special_ndtri(Tensor self) -> Tensor",
    .doc = "Inverse of the distribution function of the standard normal distribution.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::ndtri>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::reciprocal(normal_density(x["result"])); },
        saves("result"))},
};

OP(special_log_ndtr){
    .schema = "special_log_ndtr(Tensor self) -> Tensor",
    .doc = "Logarithm of the distribution function of the standard normal distribution.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::log_ndtr>,
    .derivatives = {local(
        "self", [](Backward& x) { return log_ndtr_slope(x["self"]); }, saves("self"))},
};

OP(special_entr){
    .schema = "special_entr(Tensor self) -> Tensor",
    .doc = "-self log(self), elementwise; zero at zero, -infinity below.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::entr>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::sub(-1, ops::log(x["self"])); }, saves("self"))},
};

OP(special_bessel_j0){
    .schema = "special_bessel_j0(Tensor self) -> Tensor",
    .doc = "Bessel function of the first kind, order 0.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::bessel_j0>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::neg(ops::special_bessel_j1(x["self"])); },
        saves("self"))},
};

OP(special_bessel_j1){
    .schema = "special_bessel_j1(Tensor self) -> Tensor",
    .doc = "Bessel function of the first kind, order 1.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::bessel_j1>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return first_order_slope(ops::special_bessel_j0(x["self"]), x["result"], x["self"]);
        },
        saves("self", "result"))},
};

OP(special_bessel_y0){
    .schema = "special_bessel_y0(Tensor self) -> Tensor",
    .doc = "Bessel function of the second kind, order 0.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::bessel_y0>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::neg(ops::special_bessel_y1(x["self"])); },
        saves("self"))},
};

OP(special_bessel_y1){
    .schema = "special_bessel_y1(Tensor self) -> Tensor",
    .doc = "Bessel function of the second kind, order 1.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::bessel_y1>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return second_kind_slope(ops::special_bessel_y0(x["self"]), x["result"], x["self"]);
        },
        saves("self", "result"))},
};

OP(special_modified_bessel_i0){
    .schema = "special_modified_bessel_i0(Tensor self) -> Tensor",
    .doc = "Modified Bessel function of the first kind, order 0.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::modified_bessel_i0>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::special_modified_bessel_i1(x["self"]); },
        saves("self"))},
};

OP(special_modified_bessel_i1){
    .schema = "special_modified_bessel_i1(Tensor self) -> Tensor",
    .doc = "Modified Bessel function of the first kind, order 1.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::modified_bessel_i1>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return first_order_slope(ops::special_modified_bessel_i0(x["self"]), x["result"],
                                   x["self"]);
        },
        saves("self", "result"))},
};

OP(special_modified_bessel_k0){
    .schema = "special_modified_bessel_k0(Tensor self) -> Tensor",
    .doc = "Modified Bessel function of the second kind, order 0.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::modified_bessel_k0>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::neg(ops::special_modified_bessel_k1(x["self"])); },
        saves("self"))},
};

OP(special_modified_bessel_k1){
    .schema = "special_modified_bessel_k1(Tensor self) -> Tensor",
    .doc = "Modified Bessel function of the second kind, order 1.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::modified_bessel_k1>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          return ops::neg(ops::add(ops::special_modified_bessel_k0(x["self"]),
                                   ops::div(x["result"], x["self"])));
        },
        saves("self", "result"))},
};

OP(special_scaled_modified_bessel_k0){
    .schema = "special_scaled_modified_bessel_k0(Tensor x) -> Tensor",
    .doc = "exp(x) times the modified Bessel function of the second kind, order 0.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::scaled_modified_bessel_k0>,
    .not_differentiable = names("result"),
};

OP(special_scaled_modified_bessel_k1){
    .schema = "special_scaled_modified_bessel_k1(Tensor x) -> Tensor",
    .doc = "exp(x) times the modified Bessel function of the second kind, order 1.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::scaled_modified_bessel_k1>,
    .not_differentiable = names("result"),
};

OP(special_spherical_bessel_j0){
    .schema = "special_spherical_bessel_j0(Tensor x) -> Tensor",
    .doc = "Spherical Bessel function of the first kind, order 0: sin(x) / x.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::spherical_bessel_j0>,
    .not_differentiable = names("result"),
};

OP(special_airy_ai){
    .schema = "special_airy_ai(Tensor x) -> Tensor",
    .doc = "Airy function Ai.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::airy_ai>,
    .not_differentiable = names("result"),
};
#endif
