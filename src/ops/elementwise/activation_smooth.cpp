// Smooth activation functions and their gradients.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

template <class T>
inline constexpr T normal_factor = T(0.3989422804014327);  // 1 / sqrt(2 pi)
template <class T>
inline constexpr T tanh_factor = T(0.7978845608028654);  // sqrt(2 / pi)
template <class T>
inline constexpr T cubic = T(0.044715);

struct gelu_erf {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 450;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return x * math::normal_below(x);
  }
};

// x (1 + tanh(z)) / 2 is x sigmoid(2 z), which cancels nowhere. Float results in double: near the
// minimum the angle's roundings would show.
inline double gelu_tanh_share(double x) {  // sigmoid(2 z)
  const double z = 2.0 * tanh_factor<double> * (x + cubic<double> * x * x * x);
  const double low = z > 700.0 ? 700.0 : z, e = math::detail::exp_short(low < -700.0 ? 0.0 : -low);
  return 1.0 / (1.0 + (z < -700.0 ? math::detail::infinity<double> : e));
}
template <class T>
inline double gelu_tanh_share_of(T x) {
  if constexpr (std::is_same_v<T, float>) return gelu_tanh_share(x);
  const double z = 2.0 * tanh_factor<double> * (x + cubic<double> * x * x * x);
  return 1.0 / (1.0 + math::exp_by_parts(-z));
}
struct gelu_tanh {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 500;
  template <class T>
  static T call(T x) {
    return static_cast<T>(x * gelu_tanh_share_of(x));
  }
};

struct gelu_erf_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 700;
  template <class T>
  static T call(T grad, T x) {
    const T below = math::normal_below(x);
    return grad * (below + x * normal_factor<T> * math::exp_coarse(T(-0.5) * x * x));
  }
};

struct gelu_tanh_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 800;
  template <class T>
  static T call(T grad, T x) {
    const double v = x, s = gelu_tanh_share_of(x);
    const double inner = 2.0 * tanh_factor<double> * (1.0 + 3.0 * cubic<double> * v * v);
    return static_cast<T>(grad * (s + v * s * (1.0 - s) * inner));
  }
};

// The quotients that follow round more than this does.
template <class T>
inline T near_exp(T x) {
  if constexpr (math::of_floats<T>)
    return math::exp_coarse(x);
  else
    return math::exp(x);
}

struct silu {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 310;
  static constexpr Packs packs{4, 4};
  template <class T>
  static T call(T x) {
    return x / (T(1) + near_exp(-x));
  }
};

struct silu_backward {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int cost = 400;
  static constexpr Packs packs{2, 2};
  template <class T>
  static T call(T grad, T x) {
    const T s = T(1) / (T(1) + near_exp(-x)), slope = s * (T(1) + x * (T(1) - s));
    if constexpr (is_complex_v<T>)
      return grad * conj(slope);
    else
      return grad * slope;
  }
};

// e^x for a float x that products with large numbers may follow: nothing is left far below zero.
inline double exp_or_nothing(double x, double bounded) {
  return x < -110.0 ? 0.0 : math::detail::exp_short(bounded);
}

// With w = e^x and n = w (w + 2), tanh(softplus(x)) = n / (n + 2): no logarithm, no cancellation.
struct mish {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 700;
  template <class T>
  static T call(T x) {
    const double v = x, low = v < -110.0 ? -110.0 : v, bounded = low > 40.0 ? 40.0 : low;
    if constexpr (std::is_same_v<T, float>) {
      const double w = exp_or_nothing(v, bounded), n = w * (w + 2.0);
      return static_cast<float>(v * n / (n + 2.0));
    } else {
      using namespace math::detail;
      const auto p = exp_argument(clamp_exponent(v > 40.0 ? 40.0 : v));
      const auto e = exp_sum(1.0, p.r, p.lost);
      const double w = scale_bits(e.hi, p.bits), w_lo = scale_bits(e.lo, p.bits);
      const double n = fma(w, w, 2.0 * w);
      const double n_lo = fma(w, w, 2.0 * w - n) + w_lo * (2.0 * w + 2.0);
      const auto den = two_sum(n, 2.0);
      const double inverse = 1.0 / den.hi, q = n * inverse;
      const double rest = fma(-q, den.hi, n) + (n_lo - q * (den.lo + n_lo));
      const double y = multiply_add(v, q, v * (rest * inverse));
      return v > 40.0 || v == 0.0 ? v : y;
    }
  }
};

// The slope n / (n + 2) + 4 x w (w + 1) / (n + 2)^2.
struct mish_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 900;
  template <class T>
  static T call(T grad, T x) {
    const double v = x, low = v < -110.0 ? -110.0 : v, bounded = low > 40.0 ? 40.0 : low;
    const double w = std::is_same_v<T, float> ? exp_or_nothing(v, bounded)
                                              : math::exp_by_parts(v > 40.0 ? 40.0 : v);
    const double n = w * (w + 2.0), inverse = 1.0 / (n + 2.0);
    const double slope = (n + 4.0 * bounded * w * (w + 1.0) * inverse) * inverse;
    return static_cast<T>(grad * slope);
  }
};

struct softplus {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 650;
  static constexpr int params = 2;
  template <class T>
  static T call(T x, T beta, T limit) {
    return x * beta > limit ? x : math::softplus(x, beta);
  }
};

struct softplus_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 500;
  static constexpr int params = 2;
  template <class T>
  static T call(T grad, T x, T beta, T limit) {
    const T e = math::exp_by_parts(x * beta);
    return x * beta > limit ? grad : grad * e / (e + T(1));
  }
};

struct log_sigmoid {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 650;
  template <class T>
  static T call(T x) {
    return math::log_sigmoid(x);
  }
};

struct log_sigmoid_backward {
  static constexpr unsigned dtypes = floating;
  static constexpr int cost = 500;
  template <class T>
  static T call(T grad, T x) {
    if constexpr (std::is_same_v<T, float>) {
      const double v = x, low = v < -200.0 ? -200.0 : v;
      return static_cast<T>(grad / (1.0 + math::detail::exp_short(low > 200.0 ? 200.0 : low)));
    } else {
      return grad * math::sigmoid(-x);
    }
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/activation_smooth.h"

#include "dispatch/out_dtype.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/trigonometric.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// The gradients of a backward operator: in its gradient it is linear, in self its slope changes.
Tensor bent(Backward& b, const Tensor& bend) {
  return ops::mul(ops::mul(b.grad(), b["grad_output"]), bend);
}

// --- gelu

int by_tanh(const Value& approximate) {
  const std::string_view text = approximate.as_str();
  check(text == "none" || text == "tanh", "gelu(): approximate must be 'none' or 'tanh'; got '",
        text, "'");
  return text == "tanh";
}
int gelu_way(const OpCall& c) { return by_tanh(c.arg(1)); }
int gelu_backward_way(const OpCall& c) { return by_tanh(c.arg(2)); }
void meta_gelu(Meta& m) {
  by_tanh(m.arg(1));
  meta::unary(m);
}
void meta_gelu_backward(Meta& m) {
  by_tanh(m.arg(2));
  meta::binary(m);
}
constexpr KernelRef gelu_erf = cpu::unary<scalar::gelu_erf>;
constexpr KernelRef gelu_tanh = cpu::unary<scalar::gelu_tanh>;
constexpr KernelRef gelu_erf_backward = cpu::binary<scalar::gelu_erf_backward>;
constexpr KernelRef gelu_tanh_backward = cpu::binary<scalar::gelu_tanh_backward>;

// The second derivatives: phi(x) (2 - x^2), and that of the form with tanh.
Tensor gelu_erf_bend(const Tensor& x) {
  const Tensor square = ops::mul(x, x),
               density = ops::mul(ops::exp(ops::mul(square, -0.5)), 0.3989422804014327);
  return ops::mul(density, ops::sub(2, square));
}
Tensor gelu_tanh_bend(const Tensor& x) {
  constexpr double k = 0.7978845608028654, c = 0.044715;
  const Tensor square = ops::mul(x, x);
  const Tensor t = ops::tanh(ops::mul(ops::mul(x, ops::add(ops::mul(square, c), 1)), k));
  const Tensor left = ops::sub(1, ops::mul(t, t));
  const Tensor first = ops::mul(ops::add(ops::mul(square, 3 * c), 1), k),
               second = ops::mul(x, 6 * k * c);
  const Tensor turn = ops::sub(second, ops::mul(ops::mul(t, ops::mul(first, first)), 2));
  return ops::mul(left, ops::add(first, ops::mul(ops::mul(x, turn), 0.5)));
}

// --- silu, mish, softplus

// s (1 - s) (2 + x (1 - 2 s)) with s = sigmoid(x)
Tensor silu_bend(const Tensor& x) {
  const Tensor s = ops::sigmoid(x), tilt = ops::add(ops::mul(x, ops::sub(1, ops::mul(s, 2))), 2);
  return ops::mul(ops::mul(s, ops::sub(1, s)), tilt);
}
// With w = tanh(softplus(x)): w' = (1 - w^2) s; the bend is 2 w' + x w''.
Tensor mish_bend(const Tensor& x) {
  const Tensor s = ops::sigmoid(x), w = ops::tanh(ops::softplus(x));
  const Tensor first = ops::mul(ops::sub(1, ops::mul(w, w)), s);
  const Tensor second = ops::mul(first, ops::sub(ops::sub(1, s), ops::mul(ops::mul(w, s), 2)));
  return ops::add(ops::mul(first, 2), ops::mul(x, second));
}
Tensor softplus_bend(Backward& b) {
  const Scalar beta = b.scalar("beta");
  const Tensor z = ops::mul(b["self"], beta), s = ops::sigmoid(z);
  const Tensor curved = ops::mul(ops::mul(s, ops::sub(1, s)), beta);
  return ops::where(ops::gt(z, b.scalar("threshold")), 0, curved);
}

// --- log_sigmoid

Tensor log_sigmoid(const Tensor& self) { return std::get<0>(ops::log_sigmoid_forward(self)); }
// Contiguous whatever the input is. The second result is scratch memory that this kernel needs none
// of.
void meta_log_sigmoid_forward(Meta& m) {
  const Tensor& self = m.tensor(0);
  m.call.compute = self.dtype();
  m.result(0, self.sizes(), self.dtype());
  m.result(1, IntList{0}, self.dtype());
}

// --- glu

std::pair<Tensor, Tensor> halves(const Tensor& self, int64_t dim) {
  check(self.dim() > 0, "glu(): input must have a dimension; got a 0-dim tensor");
  const int64_t d = wrap_dim(dim, self.dim()), n = self.size(d);
  check(n % 2 == 0, "glu(): the size of dimension ", d, ", which is halved, must be even; got ", n);
  check_kind(ErrorKind::NotImplemented, is_floating(self.dtype()),
             "\"glu_cpu\" not implemented for '", info(self.dtype()).legacy_name, "'");
  return {ops::slice(self, d, 0, n / 2), ops::slice(self, d, n / 2, n)};
}
Tensor glu(const Tensor& self, int64_t dim) {
  const auto [a, b] = halves(self, dim);
  return ops::mul(a, ops::sigmoid(b));
}
Tensor glu_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  const auto [a, b] = halves(self, dim);
  const Tensor s = ops::sigmoid(b), first = ops::mul(grad, s);
  const Tensor parts[] = {first, ops::mul(ops::mul(first, a), ops::sub(1, s))};
  return ops::cat(parts, dim);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(gelu){
    .schema = "gelu(Tensor self, *, str approximate='none') -> Tensor",
    .doc = "self * P(normal <= self), elementwise; by tanh where approximate says so.",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise | exact_out,
    .meta = meta_gelu,
    .cpu = cpu::chosen<gelu_way, gelu_erf, gelu_tanh>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) { return ops::gelu_backward(b.grad(), b["self"], b.text("approximate")); },
        saves("self"))},
};

OP(gelu_backward){
    .schema = "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    .doc = "Gradient of gelu.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta_gelu_backward,
    .cpu = cpu::chosen<gelu_backward_way, gelu_erf_backward, gelu_tanh_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::gelu_backward(b.grad(), b["self"], b.text("approximate"));
                },
                saves("self")),
            vjp(
                "self",
                [](Backward& b) {
                  const Tensor x = b["self"];
                  return bent(
                      b, b.text("approximate") == "tanh" ? gelu_tanh_bend(x) : gelu_erf_bend(x));
                },
                saves("grad_output", "self")),
        },
};

OP(silu){
    .schema = "silu(Tensor self) -> Tensor",
    .doc = "self * sigmoid(self), elementwise.",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::silu>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::silu_backward(b.grad(), b["self"]); },
        saves("self"))},
};

OP(silu_backward){
    .schema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "Gradient of silu.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::silu_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) { return ops::silu_backward(b.grad(), ops::conj(b["self"])); },
                saves("self")),
            vjp(
                "self",
                [](Backward& b) {
                  const Tensor bend = ops::conj(silu_bend(b["self"]));
                  return ops::mul(ops::mul(ops::conj(b.grad()), b["grad_output"]), bend);
                },
                saves("grad_output", "self")),
        },
};

OP(mish){
    .schema = "mish(Tensor self) -> Tensor",
    .doc = "self * tanh(softplus(self)), elementwise.",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::mish>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::mish_backward(b.grad(), b["self"]); },
        saves("self"))},
};

OP(mish_backward){
    .schema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "Gradient of mish.",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::mish_backward>,
    .derivatives =
        {
            vjp(
                "grad_output", [](Backward& b) { return ops::mish_backward(b.grad(), b["self"]); },
                saves("self")),
            vjp(
                "self", [](Backward& b) { return bent(b, mish_bend(b["self"])); },
                saves("grad_output", "self")),
        },
};

OP(softplus){
    .schema = "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    .doc =
        "log(1 + exp(beta * self)) / beta, elementwise; self itself where beta * self is above "
        "threshold.",
    .forms = function | out,
    .python_module = "nn",
    .flags = pointwise | exact_out,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::softplus>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::softplus_backward(b.grad(), b["self"], b.scalar("beta"),
                                        b.scalar("threshold"));
        },
        saves("self"))},
};

OP(softplus_backward){
    .schema =
        "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> "
        "Tensor",
    .doc = "Gradient of softplus.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::softplus_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::softplus_backward(b.grad(), b["self"], b.scalar("beta"),
                                                b.scalar("threshold"));
                },
                saves("self")),
            vjp(
                "self", [](Backward& b) { return bent(b, softplus_bend(b)); },
                saves("grad_output", "self")),
        },
};

OP(log_sigmoid){
    .schema = "log_sigmoid(Tensor self) -> Tensor",
    .doc = "log(sigmoid(self)), elementwise.",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<log_sigmoid>,
};

OP(log_sigmoid_forward){
    .schema = "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    .doc = "log(sigmoid(self)), and an empty tensor in the place of scratch memory.",
    .forms = out,
    .out_name = "output",
    .flags = pointwise | exact_out,
    .meta = meta_log_sigmoid_forward,
    .cpu = cpu::unary<scalar::log_sigmoid>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) { return ops::log_sigmoid_backward(b.grad(), b["self"], b["buffer"]); },
        saves("self", "buffer"))},
    .node = "LogSigmoidBackward0",
    .not_differentiable = names("buffer"),
};

OP(log_sigmoid_backward){
    .schema = "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
    .doc = "Gradient of log_sigmoid; buffer is not read.",
    .forms = out,
    .out_name = "grad_input",
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::log_sigmoid_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::log_sigmoid_backward(b.grad(), b["self"], b["buffer"]);
                },
                saves("self", "buffer")),
            vjp(
                "self",
                [](Backward& b) {
                  const Tensor s = ops::sigmoid(b["self"]);
                  return bent(b, ops::mul(s, ops::sub(s, 1)));
                },
                saves("grad_output", "self")),
        },
};

OP(glu){
    .schema = "glu(Tensor self, int dim=-1) -> Tensor",
    .doc = "First half of self along dim times the sigmoid of the second.",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Explicit,
    .any = typed_kernel<glu>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) { return ops::glu_backward(b.grad(), b["self"], b.integer("dim")); },
        saves("self"))},
};

OP(glu_backward){
    .schema = "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    .doc = "Gradient of glu.",
    .forms = out,
    .out_name = "grad_input",
    .composite = Composite::Implicit,
    .any = typed_kernel<glu_backward>,
};
#endif
