// Special functions of two arguments: entropies, incomplete gamma functions, orthogonal
// polynomials.
#include "core/checked.h"
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/math.h"
#include "kernels/scalar/special.h"

namespace facula::scalar {

struct xlogy {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 400;
  template <class T>
  static T call(T x, T y) {
    return math::xlogy(x, y);
  }
};

struct xlog1py {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 500;
  template <class T>
  static T call(T x, T y) {
    return math::xlog1py(x, y);
  }
};

struct igamma {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 3300;
  template <class T>
  static T call(T a, T x) {
    return math::igamma(a, x);
  }
  template <class T>
  static bool in_fast_range(T a, T x) {
    return math::detail::igamma_in_fast_range(a, x);
  }
  template <class T>
  static T fast_path(T a, T x) {
    return static_cast<T>(math::detail::igamma_fast<T>(a, x));
  }
};

struct igammac {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 40000;
  template <class T>
  static T call(T a, T x) {
    return math::igammac(a, x);
  }
};

struct zeta {
  static constexpr unsigned dtypes = wide_floating;
  static constexpr int cost = 13000;
  template <class T>
  static T call(T s, T q) {
    return math::zeta(s, q);
  }
  template <class T>
  static bool in_fast_range(T s, T q) {
    return math::detail::zeta_in_fast_range(s, q);
  }
  template <class T>
  static T fast_path(T s, T q) {
    return static_cast<T>(math::detail::zeta_fast<T>(s, q));
  }
};

struct polygamma {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 20000;
  static constexpr int params = 1;
  template <class T>
  static T call(T x, T n) {
    return math::polygamma(static_cast<int64_t>(n), x);
  }
};

struct chebyshev_polynomial_t {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::chebyshev_polynomial_t(x, static_cast<int64_t>(n));
  }
};

struct chebyshev_polynomial_u {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::chebyshev_polynomial_u(x, static_cast<int64_t>(n));
  }
};

struct chebyshev_polynomial_v {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::chebyshev_polynomial_v(x, static_cast<int64_t>(n));
  }
};

struct chebyshev_polynomial_w {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::chebyshev_polynomial_w(x, static_cast<int64_t>(n));
  }
};

struct shifted_chebyshev_polynomial_t {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::shifted_chebyshev_polynomial_t(x, static_cast<int64_t>(n));
  }
};

struct shifted_chebyshev_polynomial_u {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::shifted_chebyshev_polynomial_u(x, static_cast<int64_t>(n));
  }
};

struct shifted_chebyshev_polynomial_v {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::shifted_chebyshev_polynomial_v(x, static_cast<int64_t>(n));
  }
};

struct shifted_chebyshev_polynomial_w {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::shifted_chebyshev_polynomial_w(x, static_cast<int64_t>(n));
  }
};

struct hermite_polynomial_h {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::hermite_polynomial_h(x, static_cast<int64_t>(n));
  }
};

struct hermite_polynomial_he {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::hermite_polynomial_he(x, static_cast<int64_t>(n));
  }
};

struct laguerre_polynomial_l {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::laguerre_polynomial_l(x, static_cast<int64_t>(n));
  }
};

struct legendre_polynomial_p {
  static constexpr unsigned dtypes = wide_floating;
  template <class T>
  static T call(T x, T n) {
    return math::legendre_polynomial_p(x, static_cast<int64_t>(n));
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/special/binary.h"

#include <cmath>

#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/special/special.h"

namespace facula {
namespace {

[[noreturn]] void no_derivative(const char* what) {
  throw Error(ErrorKind::NotImplemented, "the derivative for '", what, "' is not implemented.");
}

// self / y, self a tensor or a number.
Tensor ratio(Backward& b, const Tensor& y) {
  return b.is_number("self") ? ops::div(b.scalar("self"), y) : ops::div(b["self"], y);
}

// x^(a - 1) e^-x / gamma(a)
Tensor gamma_density(const Tensor& a, const Tensor& x) {
  const Tensor power = ops::mul(ops::sub(a, 1), ops::log(x));
  return ops::exp(ops::sub(ops::sub(power, x), ops::lgamma(a)));
}

void meta_polygamma(Meta& m) {
  check(m.arg(0).i >= 0, "polygamma(): n must not be negative; got ", m.arg(0).i);
  const DType d = float_of(m.tensor(1).dtype());
  const Tensor& self = m.tensor(1);
  m.call.compute = d;
  m.result_like(0, self, d);
}
void polygamma_order(const OpCall& c, DType, Scalar* params) { params[0] = c.arg(0).as_scalar(); }
Tensor polygamma_in_place(const Tensor& self, int64_t n) {
  const Tensor value = ops::polygamma(n, self);
  check(can_cast(value.dtype(), self.dtype()), "result type ", info(value.dtype()).legacy_name,
        " can't be cast to the desired output type ", info(self.dtype()).legacy_name);
  return ops::copy_(self, value);
}

// The sum of lgamma(self - j / 2) over j < p, and a constant.
Tensor mvlgamma(const Tensor& self, int64_t p) {
  check(p >= 1, "mvlgamma(): p must be at least 1; got ", p);
  check(self.dtype() != DType::Bool, "mvlgamma(): self must not be bool");
  check(p <= INT32_MAX, "mvlgamma(): expected p below 2^31; got ", p);
  constexpr double log_pi = 1.1447298858494002;
  Tensor sum = ops::lgamma(self);
  for (int64_t j = 1; j < p; ++j)
    sum = ops::add(sum, ops::lgamma(ops::sub(self, 0.5 * static_cast<double>(j))));
  return ops::add(sum, 0.25 * log_pi * static_cast<double>(p * (p - 1)));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(xlogy_Tensor){
    .schema = "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "self log(other), elementwise; zero where self is zero and other is not nan.",
    .forms = all_forms,
    .aliases = "special_xlogy",
    .out_name = "OutTensor",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::xlogy>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  if (b.is_number("other")) return ops::mul(b.grad(), std::log(b.number("other")));
                  const Tensor y = b["other"], slope = ops::mul(b.grad(), ops::log(y));
                  return ops::where(ops::logical_and(ops::eq(b["self"], 0), ops::le(y, 0)), 0,
                                    slope);
                },
                saves("self", "other")),
            vjp(
                "other", [](Backward& b) { return ops::mul(b.grad(), ratio(b, b["other"])); },
                saves("self", "other")),
        },
    .node = "XlogyBackward0",
    .number_nodes = names("XlogyBackward1", "XlogyBackward2"),
};

OP(special_xlog1py){
    .schema = "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    .doc = "self log(1 + other), elementwise; zero where self is zero and other is not nan.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::xlog1py>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  if (b.is_number("other"))
                    return ops::mul(b.grad(), std::log1p(b.number("other")));
                  const Tensor y = b["other"], slope = ops::mul(b.grad(), ops::log1p(y));
                  return ops::where(ops::logical_and(ops::eq(b["self"], 0), ops::le(y, -1)), 0,
                                    slope);
                },
                saves("self", "other")),
            vjp(
                "other",
                [](Backward& b) { return ops::mul(b.grad(), ratio(b, ops::add(b["other"], 1))); },
                saves("self", "other")),
        },
    .node = "SpecialXlog1PyBackward0",
    .number_nodes = names("SpecialXlog1PyBackward1", "SpecialXlog1PyBackward2"),
};

OP(special_zeta){
    .schema = "special_zeta(Tensor self, Tensor other) -> Tensor",
    .doc = "Hurwitz zeta function: the sum of (k + other)^-self over k >= 0, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::zeta>,
    .derivatives =
        {
            vjp("self", [](Backward&) -> Tensor { no_derivative("zeta"); }),
            vjp(
                "other",
                [](Backward& b) {
                  if (b.is_number("self")) {
                    const double s = b.number("self");
                    return ops::mul(b.grad(), ops::mul(ops::special_zeta(s + 1, b["other"]), -s));
                  }
                  const Tensor s = b["self"];
                  return ops::mul(b.grad(), ops::mul(ops::special_zeta(ops::add(s, 1), b["other"]),
                                                     ops::neg(s)));
                },
                saves("self", "other")),
        },
};

OP(igamma){
    .schema = "igamma(Tensor self, Tensor other) -> Tensor",
    .doc = "Regularized lower incomplete gamma function of shape self at other, elementwise.",
    .forms = all_forms,
    .aliases = "special_gammainc",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::igamma>,
    .derivatives =
        {
            vjp("self", [](Backward&) -> Tensor { no_derivative("igamma: input"); }),
            vjp(
                "other",
                [](Backward& b) {
                  return ops::mul(b.grad(), gamma_density(b["self"], b["other"]));
                },
                saves("self", "other")),
        },
};

OP(igammac){
    .schema = "igammac(Tensor self, Tensor other) -> Tensor",
    .doc = "Regularized upper incomplete gamma function of shape self at other, elementwise.",
    .forms = all_forms,
    .aliases = "special_gammaincc",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::igammac>,
    .derivatives =
        {
            vjp("self", [](Backward&) -> Tensor { no_derivative("igammac: input"); }),
            vjp(
                "other",
                [](Backward& b) {
                  return ops::mul(b.grad(), ops::neg(gamma_density(b["self"], b["other"])));
                },
                saves("self", "other")),
        },
};

OP(polygamma){
    .schema = "polygamma(int n, Tensor self) -> Tensor",
    .doc = "Derivative of digamma of order n >= 0, elementwise.",
    .forms = function | method | out,
    .aliases = "special_polygamma",
    .flags = pointwise,
    .meta = meta_polygamma,
    .cpu = cpu::with_params<polygamma_order, 1>(cpu::unary<scalar::polygamma>),
    .derivatives = {local(
        "self",
        [](Backward& x) {
          const int64_t order = checked_add(x.integer("n"), 1, "polygamma(): the order");
          return ops::polygamma(order, x["self"]);
        },
        saves("self"))},
};

OP(polygamma_){
    .schema = "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
    .doc = "The polygamma of self, in place.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<polygamma_in_place>,
};

OP(mvlgamma){
    .schema = "mvlgamma(Tensor self, int p) -> Tensor",
    .doc = "Logarithm of the multivariate gamma function of dimension p, elementwise.",
    .forms = all_forms,
    .aliases = "special_multigammaln",
    .composite = Composite::Explicit,
    .any = typed_kernel<mvlgamma>,
    .derivatives = {local(
        "self",
        [](Backward& x) {
          const Tensor self = x["self"];
          Tensor sum = ops::digamma(self);
          for (int64_t j = 1; j < x.integer("p"); ++j)
            sum = ops::add(sum, ops::digamma(ops::sub(self, 0.5 * static_cast<double>(j))));
          return sum;
        },
        saves("self"))},
};

OP(special_chebyshev_polynomial_t){
    .schema = "special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the first kind of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::chebyshev_polynomial_t>,
    .not_differentiable = names("result"),
};

OP(special_chebyshev_polynomial_u){
    .schema = "special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the second kind of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::chebyshev_polynomial_u>,
    .not_differentiable = names("result"),
};

OP(special_chebyshev_polynomial_v){
    .schema = "special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the third kind of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::chebyshev_polynomial_v>,
    .not_differentiable = names("result"),
};

OP(special_chebyshev_polynomial_w){
    .schema = "special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the fourth kind of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::chebyshev_polynomial_w>,
    .not_differentiable = names("result"),
};

OP(special_shifted_chebyshev_polynomial_t){
    .schema = "special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the first kind on [0, 1] of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::shifted_chebyshev_polynomial_t>,
    .not_differentiable = names("result"),
};

OP(special_shifted_chebyshev_polynomial_u){
    .schema = "special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the second kind on [0, 1] of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::shifted_chebyshev_polynomial_u>,
    .not_differentiable = names("result"),
};

OP(special_shifted_chebyshev_polynomial_v){
    .schema = "special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the third kind on [0, 1] of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::shifted_chebyshev_polynomial_v>,
    .not_differentiable = names("result"),
};

OP(special_shifted_chebyshev_polynomial_w){
    .schema = "special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
    .doc = "Chebyshev polynomial of the fourth kind on [0, 1] of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::shifted_chebyshev_polynomial_w>,
    .not_differentiable = names("result"),
};

OP(special_hermite_polynomial_h){
    .schema = "special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
    .doc = "Physicist's Hermite polynomial of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::hermite_polynomial_h>,
    .not_differentiable = names("result"),
};

OP(special_hermite_polynomial_he){
    .schema = "special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
    .doc = "Probabilist's Hermite polynomial of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::hermite_polynomial_he>,
    .not_differentiable = names("result"),
};

OP(special_laguerre_polynomial_l){
    .schema = "special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
    .doc = "Laguerre polynomial of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::laguerre_polynomial_l>,
    .not_differentiable = names("result"),
};

OP(special_legendre_polynomial_p){
    .schema = "special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
    .doc = "Legendre polynomial of degree n at x, elementwise.",
    .forms = function | out,
    .python_module = "special",
    .flags = pointwise,
    .numbers = names("x", "n"),
    .meta = meta::binary_float_of_tensor,
    .cpu = cpu::binary<scalar::legendre_polynomial_p>,
    .not_differentiable = names("result"),
};
#endif
