// Addition, multiplication and their kin.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

// bool adds as "or" and multiplies as "and": through unsigned, so that integers wrap.
template <class T>
inline T wrap_add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}
template <class T>
inline T wrap_mul(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

struct add {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  static constexpr int params = 1;
  static constexpr bool narrow_params = true;
  template <class T>
  static T call(T a, T b, T alpha) {
    return wrap_add(a, wrap_mul(b, alpha));
  }
};
struct sub {
  static constexpr unsigned dtypes = numbers | wide_unsigned;
  static constexpr int params = 1;
  static constexpr bool narrow_params = true;
  template <class T>
  static T call(T a, T b, T alpha) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(wrap_mul(b, alpha)));
    else
      return a - alpha * b;
  }
};
struct mul {
  static constexpr unsigned dtypes = all_kinds | wide_unsigned;
  static constexpr bool exact_number = true;
  template <class T>
  static T call(T a, T b) {
    return wrap_mul(a, b);
  }
};
struct div {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr bool exact_number = true;
  template <class T>
  static T call(T a, T b) {
    return a / b;
  }
};
struct neg {
  static constexpr unsigned dtypes = numbers;
  template <class T>
  static T call(T a) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(0 - static_cast<uint64_t>(a));
    else
      return -a;
  }
  // Half types need not become floats for their sign.
  template <class H>
  static H stored(H a) {
    a.bits ^= 0x8000;
    return a;
  }
};

// Quotients rounded down or towards zero, and their rests; integers by zero are the caller's care.
struct div_trunc {
  static constexpr unsigned dtypes = real_numbers;
  static constexpr bool exact_number = true;
  template <class T>
  static T call(T a, T b) {
    return math::trunc_div(a, b);
  }
};

struct div_floor {
  static constexpr unsigned dtypes = real_numbers;
  static constexpr bool exact_number = true;
  template <class T>
  static T call(T a, T b) {
    return math::floor_div(a, b);
  }
};

struct remainder {
  static constexpr unsigned dtypes = real_numbers;
  template <class T>
  static T call(T a, T b) {
    return math::remainder(a, b);
  }
  static bool in_fast_range(float a, float b) { return math::fmod_in_fast_range(a, b); }
  static float fast_path(float a, float b) { return math::remainder_fast(a, b); }
};

struct fmod {
  static constexpr unsigned dtypes = real_numbers;
  template <class T>
  static T call(T a, T b) {
    return math::fmod(a, b);
  }
  static bool in_fast_range(float a, float b) { return math::fmod_in_fast_range(a, b); }
  static float fast_path(float a, float b) { return math::fmod_fast(a, b); }
};

struct reciprocal {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T x) {
    return T(1) / x;
  }
};

struct abs {
  static constexpr unsigned dtypes = numbers;
  template <class T>
  static auto call(T x) {
    if constexpr (is_complex_v<T> || std::is_floating_point_v<T>)
      return math::abs(x);
    else
      return math::detail::magnitude(x);
  }
  template <class H>
  static H stored(H x) {
    x.bits &= 0x7fff;
    return x;
  }
};

struct sgn {
  static constexpr unsigned dtypes = all_kinds;
  template <class T>
  static T call(T x) {
    if constexpr (is_complex_v<T>) {
      const auto size = math::abs(x);
      return size == 0 ? T(0) : T(x.re / size, x.im / size);
    } else if constexpr (std::is_same_v<T, bool>) {
      return x;
    } else {
      return static_cast<T>((T(0) < x) - (x < T(0)));
    }
  }
};

struct signbit {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static bool call(T x) {
    if constexpr (std::is_floating_point_v<T>)
      return math::signbit(x);
    else
      return x < T(0);
  }
};

struct addcmul {
  static constexpr unsigned dtypes = numbers;
  static constexpr int params = 1;
  template <class T>
  static T call(T x, T a, T b, T value) {
    return wrap_add(x, wrap_mul(wrap_mul(value, a), b));
  }
};

struct addcdiv {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int params = 1;
  template <class T>
  static T call(T x, T a, T b, T value) {
    return x + value * a / b;
  }
};

// Counted from the nearer end, so that both ends come out exactly.
template <class T>
inline T between(T a, T b, T weight) {
  bool near_start;
  if constexpr (is_complex_v<T>)
    near_start = weight.re * weight.re + weight.im * weight.im < 0.25f;
  else
    near_start = weight < T(0.5) && weight > T(-0.5);
  return near_start ? a + weight * (b - a) : b - (b - a) * (T(1) - weight);
}
struct lerp_Scalar {
  static constexpr unsigned dtypes = floating | complex;
  static constexpr int params = 1;
  template <class T>
  static T call(T a, T b, T weight) {
    return between(a, b, weight);
  }
};

struct lerp_Tensor {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T a, T b, T weight) {
    return between(a, b, weight);
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/arithmetic.h"

#include "dispatch/out_dtype.h"
#include "ops/create/creation.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// As PyTorch words them.
void check_alpha(DType result, const Scalar& alpha) {
  check(!alpha.is_bool() || result == DType::Bool,
        "alpha may be a bool only where the result is bool");
  check(is_differentiable(result) || alpha.is_integral(),
        "alpha must be an integer for integer tensors; got a floating-point number");
  check(is_complex(result) || !alpha.is_complex(),
        "alpha must be real for real tensors; got a complex number");
}

void meta_add(Meta& m) {
  meta::binary(m);
  check_alpha(m.results[0].dtype, m.arg(2).as_scalar());
}

void meta_sub(Meta& m) {
  auto is_bool = [&](int i) {
    return m.arg(i).is_tensor() ? m.tensor(i).dtype() == DType::Bool : m.arg(i).tag == Tag::Bool;
  };
  check_kind(ErrorKind::NotImplemented, !is_bool(0) && !is_bool(1),
             "sub(): `-` takes no bool tensors; a mask is inverted by `~` or logical_not()");
  meta_add(m);
}

void meta_neg(Meta& m) {
  check_kind(ErrorKind::NotImplemented, m.tensor(0).dtype() != DType::Bool,
             "neg(): `-` takes no bool tensors; a mask is inverted by `~` or logical_not()");
  meta::unary(m);
}

// The conjugate of the other factor, where there is one to conjugate.
Tensor times_conj(const Tensor& grad, Backward& b, Name other) {
  if (b.is_number(other)) return ops::mul(grad, b.scalar(other).conj());
  const Tensor y = b[other];
  return ops::mul(grad, is_complex(y.dtype()) ? ops::conj(y) : y);
}

// --- division that rounds

bool has_zero(const Tensor& t) {
  const Tensor flat = cpu::contiguous(t);
  bool found = false;
  dispatch<IntegralTypes, WideUnsignedTypes>(t.dtype(), "div_cpu", [&]<class T>(Type<T>) {
    const T* p = flat.data<T>();
    for (int64_t i = 0; i < flat.numel(); ++i) found |= p[i] == T(0);
  });
  return found;
}

// Floats divide by zero; integers must not.
void check_divisor(const OpCall& c) {
  if (!is_integral(c.compute, false)) return;
  const Value& v = c.arg(1);
  const bool zero = v.is_tensor() ? has_zero(v.as_tensor()) : v.as_scalar().equals(0);
  check(!zero || c.results[0].as_tensor().numel() == 0, "ZeroDivisionError");
}
int checked_divisor(const OpCall& c) {
  check_divisor(c);
  return 0;
}

enum Rounding { exact, towards_zero, down };
Rounding rounding_of(const Value& mode) {
  if (mode.is_none()) return exact;
  const std::string_view text = mode.as_str();
  check(text == "trunc" || text == "floor",
        "div(): rounding_mode must be None, 'trunc' or 'floor'; got '", text, "'");
  return text == "trunc" ? towards_zero : down;
}
int division(const OpCall& c) {
  const Rounding r = rounding_of(c.arg(2));
  if (r != exact) check_divisor(c);
  return r;
}
void meta_division(Meta& m) {
  rounding_of(m.arg(2)) == exact ? meta::binary_float(m) : meta::binary(m);
}

constexpr KernelRef div_loops = cpu::binary<scalar::div>;
constexpr KernelRef div_trunc_loops = cpu::binary<scalar::div_trunc>;
constexpr KernelRef div_floor_loops = cpu::binary<scalar::div_floor>;
constexpr KernelRef remainder_loops = cpu::binary<scalar::remainder>;
constexpr KernelRef fmod_loops = cpu::binary<scalar::fmod>;
constexpr KernelRef rounding_division =
    cpu::chosen<division, div_loops, div_trunc_loops, div_floor_loops>;
constexpr KernelRef floor_division = cpu::chosen<checked_divisor, div_floor_loops>;
constexpr KernelRef remainders = cpu::chosen<checked_divisor, remainder_loops>;
constexpr KernelRef fmods = cpu::chosen<checked_divisor, fmod_loops>;

Tensor over_other(Backward& b) {
  if (b.is_number("other")) return ops::div(b.grad(), b.scalar("other").conj());
  return ops::div(b.grad(), ops::conj(b["other"]));
}
Tensor minus_over_square(Backward& b) {
  const Tensor y = b["other"];
  const Tensor over = b.is_number("self") ? ops::div(ops::div(b.scalar("self"), y), y)
                                          : ops::div(ops::div(b["self"], y), y);
  return ops::neg(ops::mul(b.grad(), ops::conj(over)));
}

// The gradient in the divisor of a rest: less the rounded quotient.
Tensor minus_quotient(Backward& b, std::string_view mode) {
  const Tensor q = b.is_number("self") ? ops::div(b.scalar("self"), b["other"], mode)
                                       : ops::div(b["self"], b["other"], mode);
  return ops::neg(ops::mul(b.grad(), q));
}

// The one operation of arithmetic that PyTorch has for float8.
void meta_mul(Meta& m) {
  meta::binary(m);
  if (is_float8(m.call.compute)) m.call.compute = DType::Float32;
}

// --- signs

void meta_abs(Meta& m) {
  const bool complex = is_complex(m.tensor(0).dtype());
  check(!complex || m.call.op->variant != Variant::Inplace,
        "abs_(): a complex tensor cannot hold its real result in place");
  meta::unary_real(m);
  if (is_float8(m.tensor(0).dtype())) m.call.compute = DType::Float32;
}
void meta_sign(Meta& m) {
  check_kind(ErrorKind::NotImplemented, !is_complex(m.tensor(0).dtype()), "Unlike NumPy, ",
             m.op_name(), "() does not take complex numbers: use sgn().");
  meta::unary(m);
}
void meta_signbit(Meta& m) {
  check_kind(ErrorKind::NotImplemented, !is_complex(m.tensor(0).dtype()),
             "signbit is not implemented for complex tensors.");
  meta::unary_bool(m);
}

// Of z / |z|: the part of the gradient perpendicular to z, divided by |z|; zero at zero.
Tensor sgn_gradient(Backward& b) {
  const Tensor z = b["self"];
  if (!is_complex(z.dtype())) return ops::zeros_like(b.grad());
  const Tensor s = ops::sgn(z), along = ops::real(ops::mul(ops::conj(s), b.grad()));
  const Tensor across = ops::sub(b.grad(), ops::mul(s, along));
  return ops::where(ops::eq(z, 0), 0, ops::div(across, ops::abs(z)));
}

Tensor rsub(const Tensor& self, const Value& other, const Scalar& alpha) {
  return other.is_tensor() ? ops::sub(other.as_tensor(), self, alpha)
                           : ops::sub(other.as_scalar(), self, alpha);
}

Tensor positive(const Tensor& self) {
  check_kind(ErrorKind::NotImplemented, self.dtype() != DType::Bool,
             "positive(): a number type was expected; got bool");
  return self;
}

// --- products added

void meta_addcdiv(Meta& m) {
  check(!is_integral(m.tensor(1).dtype(), true) || !is_integral(m.tensor(2).dtype(), true),
        "Integer division with addcdiv is not supported: convert tensor1 or tensor2 to floating "
        "point, or use div "
        "with a rounding_mode.");
  meta::ternary(m);
}

void check_lerp(Meta& m, int i, const char* what) {
  check(m.tensor(i).dtype() == m.tensor(0).dtype(), "expected dtype ", name(m.tensor(0).dtype()),
        " for `", what, "` but got dtype ", name(m.tensor(i).dtype()));
}
void meta_lerp_Scalar(Meta& m) {
  check_lerp(m, 1, "end");
  meta::binary(m);
}
void meta_lerp_Tensor(Meta& m) {
  check_lerp(m, 1, "end");
  if (m.tensor(2).dim() > 0) check_lerp(m, 2, "weight");
  meta::ternary(m);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(add_Tensor){
    .schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .doc = "Sum of self and alpha times other, elementwise.",
    .forms = all_forms,
    .flags = pointwise | linear,
    .numbers = names("self", "other"),
    .meta = meta_add,
    .cpu = cpu::binary<scalar::add>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return b.grad(); }),
            vjp("other",
                [](Backward& b) {
                  const Scalar alpha = b.scalar("alpha");
                  return alpha.equals(1) ? b.grad() : ops::mul(b.grad(), alpha.conj());
                }),
        },
    .node = "AddBackward0",
    .old_order = "self alpha other",
};

OP(sub_Tensor){
    .schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .doc = "Difference of self and alpha times other, elementwise.",
    .forms = all_forms,
    .aliases = "subtract",
    .flags = pointwise | linear,
    .numbers = names("self", "other"),
    .meta = meta_sub,
    .cpu = cpu::binary<scalar::sub>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return b.grad(); }),
            vjp("other", [](Backward& b) { return ops::mul(b.grad(), -b.scalar("alpha").conj()); }),
        },
    .node = "SubBackward0",
    .old_order = "self alpha other",
};

OP(mul_Tensor){
    .schema = "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Product of self and other, elementwise.",
    .forms = all_forms,
    .aliases = "multiply",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta_mul,
    .cpu = cpu::binary<scalar::mul>,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return times_conj(b.grad(), b, "other"); },
                saves("other")),
            vjp(
                "other", [](Backward& b) { return times_conj(b.grad(), b, "self"); },
                saves("self")),
        },
    .node = "MulBackward0",
    .jvp = forward::bilinear,
};

OP(div_Tensor){
    .schema = "div.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Quotient of self and other, elementwise; integers divide as floating point numbers.",
    .forms = all_forms,
    .aliases = "divide,true_divide",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_float,
    .cpu = cpu::binary<scalar::div>,
    .derivatives = {vjp("self", over_other, saves("other")),
                    vjp("other", minus_over_square, saves("self", "other"))},
    .node = "DivBackward0",
};

OP(div_Tensor_mode){
    .schema = "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    .doc =
        "Quotient of self and other, elementwise, rounded by rounding_mode: None, 'trunc' or "
        "'floor'.",
    .forms = all_forms,
    .aliases = "divide",
    .out_name = "out_mode",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta_division,
    .cpu = rounding_division,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return b.is_none("rounding_mode") ? over_other(b) : ops::zeros_like(b.grad());
                },
                saves("other")),
            vjp(
                "other",
                [](Backward& b) {
                  return b.is_none("rounding_mode") ? minus_over_square(b)
                                                    : ops::zeros_like(b.grad());
                },
                saves("self", "other")),
        },
    .node = "DivBackward2",
};

OP(floor_divide){
    .schema = "floor_divide(Tensor self, Tensor other) -> Tensor",
    .doc = "Quotient of self and other, elementwise, rounded down.",
    .forms = all_forms,
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary,
    .cpu = floor_division,
    .hole = "derivatives: PyTorch has none either; the result is a step function",
};

OP(remainder_Tensor){
    .schema = "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Rest of division rounded down, elementwise: it has the sign of other.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_of_tensor,
    .cpu = remainders,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return b.grad(); }),
            vjp(
                "other", [](Backward& b) { return minus_quotient(b, "floor"); },
                saves("self", "other")),
        },
    .node = "RemainderBackward1",
    .number_nodes = names("RemainderBackward1", "RemainderBackward0"),
};

OP(fmod_Tensor){
    .schema = "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Rest of division rounded towards zero, elementwise: it has the sign of self.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("other"),
    .meta = meta::binary,
    .cpu = fmods,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return b.grad(); }),
            vjp(
                "other", [](Backward& b) { return minus_quotient(b, "trunc"); },
                saves("self", "other")),
        },
    .node = "FmodBackward1",
    .number_nodes = names("FmodBackward0"),
};

OP(rsub_Tensor){
    .schema = "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .doc = "Difference of other and alpha times self, elementwise.",
    .forms = function,
    .composite = Composite::Explicit,
    .numbers = names("other"),
    .any = typed_kernel<rsub>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return ops::mul(b.grad(), -b.scalar("alpha").conj()); }),
            vjp("other", [](Backward& b) { return b.grad(); }),
        },
    .node = "RsubBackward0",
    .number_nodes = names("RsubBackward1"),
};

OP(neg){
    .schema = "neg(Tensor self) -> Tensor",
    .doc = "Negative of self, elementwise.",
    .forms = all_forms,
    .aliases = "negative",
    .flags = pointwise | linear | exact_out,
    .meta = meta_neg,
    .cpu = cpu::unary<scalar::neg>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::neg(b.grad()); })},
};

OP(positive){
    .schema = "positive(Tensor(a) self) -> Tensor(a)",
    .doc = "Self; an error for bool tensors.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<positive>,
};

OP(reciprocal){
    .schema = "reciprocal(Tensor self) -> Tensor",
    .doc = "One over self, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = meta::unary_float,
    .cpu = cpu::unary<scalar::reciprocal>,
    .derivatives = {local(
        "self", [](Backward& x) { return ops::neg(ops::mul(x["result"], x["result"])); },
        saves("result"))},
};

OP(abs){
    .schema = "abs(Tensor self) -> Tensor",
    .doc = "Absolute value of self, elementwise; real for complex numbers.",
    .forms = all_forms,
    .aliases = "absolute",
    .flags = pointwise | exact_out,
    .meta = meta_abs,
    .cpu = cpu::unary<scalar::abs>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::mul(b.grad(), ops::sgn(b["self"])); },
        saves("self"))},
};

OP(sign){
    .schema = "sign(Tensor self) -> Tensor",
    .doc = "Sign of self, elementwise: -1, 0 or 1.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta_sign,
    .cpu = cpu::unary<scalar::sgn>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::zeros_like(b.grad()); })},
};

OP(sgn){
    .schema = "sgn(Tensor self) -> Tensor",
    .doc =
        "Sign of self, elementwise; for complex numbers self over its absolute value, zero at "
        "zero.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::sgn>,
    .derivatives = {vjp("self", sgn_gradient, saves("self"))},
};

OP(signbit){
    .schema = "signbit(Tensor self) -> Tensor",
    .doc = "Whether the sign bit of self is set, elementwise: true for -0.0 as well.",
    .forms = function | method | out,
    .flags = pointwise | exact_out,
    .meta = meta_signbit,
    .cpu = cpu::unary<scalar::signbit>,
};

OP(addcmul){
    .schema = "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = "self + value * tensor1 * tensor2, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .meta = meta::ternary,
    .cpu = cpu::ternary<scalar::addcmul>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return b.grad(); }),
            local(
                "tensor1", [](Backward& x) { return ops::mul(x["tensor2"], x.scalar("value")); },
                saves("tensor2")),
            local(
                "tensor2", [](Backward& x) { return ops::mul(x["tensor1"], x.scalar("value")); },
                saves("tensor1")),
        },
    .old_order = "self value tensor1 tensor2",
};

OP(addcdiv){
    .schema = "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = "self + value * tensor1 / tensor2, elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .meta = meta_addcdiv,
    .cpu = cpu::ternary<scalar::addcdiv>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return b.grad(); }),
            local(
                "tensor1", [](Backward& x) { return ops::div(x.scalar("value"), x["tensor2"]); },
                saves("tensor2")),
            local(
                "tensor2",
                [](Backward& x) {
                  const Tensor y = x["tensor2"];
                  return ops::mul(ops::div(ops::div(x["tensor1"], y), y), -x.scalar("value"));
                },
                saves("tensor1", "tensor2")),
        },
    .old_order = "self value tensor1 tensor2",
};

OP(lerp_Scalar){
    .schema = "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    .doc = "self + weight * (end - self), elementwise.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta_lerp_Scalar,
    .cpu = cpu::binary<scalar::lerp_Scalar>,
    .derivatives =
        {
            vjp("self",
                [](Backward& b) {
                  const Scalar w = b.scalar("weight").conj();
                  return ops::sub(b.grad(), ops::mul(b.grad(), w));
                }),
            vjp("end", [](Backward& b) { return ops::mul(b.grad(), b.scalar("weight").conj()); }),
        },
    .node = "LerpBackward0",
};

OP(lerp_Tensor){
    .schema = "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    .doc = "self + weight * (end - self), elementwise.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .meta = meta_lerp_Tensor,
    .cpu = cpu::ternary<scalar::lerp_Tensor>,
    .derivatives =
        {
            local(
                "self", [](Backward& x) { return ops::sub(1, x["weight"]); }, saves("weight")),
            local(
                "end", [](Backward& x) { return x["weight"]; }, saves("weight")),
            local(
                "weight", [](Backward& x) { return ops::sub(x["end"], x["self"]); },
                saves("self", "end")),
        },
    .node = "LerpBackward1",
};
#endif
