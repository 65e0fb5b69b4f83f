// Addition, multiplication and their kin.
#include "kernels/cpu/pointwise.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

// bool adds as "or" and multiplies as "and": through unsigned, so that integers wrap.
template <class T>
inline T wrap_add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
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
  template <class T>
  static T call(T a, T b, T alpha) {
    return wrap_add(a, wrap_mul(b, alpha));
  }
};
struct sub {
  static constexpr unsigned dtypes = numbers | wide_unsigned;
  static constexpr int params = 1;
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
  template <class T>
  static T call(T a, T b) {
    return wrap_mul(a, b);
  }
};
struct div {
  static constexpr unsigned dtypes = floating | complex;
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
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/view.h"

namespace facula {
namespace {

// As PyTorch words them.
void check_alpha(DType result, const Scalar& alpha) {
  check(!alpha.is_bool() || result == DType::Bool, "Boolean alpha only supported for Boolean results.");
  check(is_differentiable(result) || alpha.is_integral(),
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(is_complex(result) || !alpha.is_complex(),
        "For non-complex input tensors, argument alpha must not be a complex number.");
}

void meta_add(Meta& m) {
  meta::binary(m);
  check_alpha(m.results[0].dtype, m.arg(2).as_scalar());
}

void meta_sub(Meta& m) {
  auto is_bool = [&](int i) {
    return m.arg(i).is_tensor() ? m.tensor(i).dtype() == DType::Bool : m.arg(i).tag == Tag::Bool;
  };
  check(!is_bool(0) && !is_bool(1),
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
        "mask, use the `~` or `logical_not()` operator instead.");
  meta_add(m);
}

void meta_neg(Meta& m) {
  check(m.tensor(0).dtype() != DType::Bool,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
        "use the `~` or `logical_not()` operator instead.");
  meta::unary(m);
}

// The conjugate of the other factor, where there is one to conjugate.
Tensor times_conj(const Tensor& grad, Backward& b, Name other) {
  if (b.is_number(other)) return ops::mul(grad, b.scalar(other).conj());
  const Tensor y = b[other];
  return ops::mul(grad, is_complex(y.dtype()) ? ops::conj(y) : y);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(add_Tensor) {
  .schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
  .doc = "Sum of self and alpha times other, elementwise.",
  .forms = all_forms,
  .flags = pointwise | linear,
  .numbers = names("self", "other"),
  .meta = meta_add,
  .cpu = cpu::binary<scalar::add>,
  .derivatives = {
      vjp("self", [](Backward& b) { return b.grad(); }),
      vjp("other", [](Backward& b) {
        const Scalar alpha = b.scalar("alpha");
        return alpha.equals(1) ? b.grad() : ops::mul(b.grad(), alpha.conj());
      }),
  },
};

OP(sub_Tensor) {
  .schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
  .doc = "Difference of self and alpha times other, elementwise.",
  .forms = all_forms,
  .aliases = "subtract",
  .flags = pointwise | linear,
  .numbers = names("self", "other"),
  .meta = meta_sub,
  .cpu = cpu::binary<scalar::sub>,
  .derivatives = {
      vjp("self", [](Backward& b) { return b.grad(); }),
      vjp("other", [](Backward& b) { return ops::mul(b.grad(), -b.scalar("alpha").conj()); }),
  },
};

OP(mul_Tensor) {
  .schema = "mul.Tensor(Tensor self, Tensor other) -> Tensor",
  .doc = "Product of self and other, elementwise.",
  .forms = all_forms,
  .aliases = "multiply",
  .flags = pointwise,
  .numbers = names("self", "other"),
  .meta = meta::binary,
  .cpu = cpu::binary<scalar::mul>,
  .derivatives = {
      vjp("self", [](Backward& b) { return times_conj(b.grad(), b, "other"); }, saves("other")),
      vjp("other", [](Backward& b) { return times_conj(b.grad(), b, "self"); }, saves("self")),
  },
};

OP(div_Tensor) {
  .schema = "div.Tensor(Tensor self, Tensor other) -> Tensor",
  .doc = "Quotient of self and other, elementwise; integers divide as floating point numbers.",
  .forms = all_forms,
  .aliases = "divide,true_divide",
  .flags = pointwise,
  .numbers = names("self", "other"),
  .meta = meta::binary_float,
  .cpu = cpu::binary<scalar::div>,
  .derivatives = {
      vjp("self", [](Backward& b) {
        if (b.is_number("other")) return ops::div(b.grad(), b.scalar("other").conj());
        return ops::div(b.grad(), ops::conj(b["other"]));
      }, saves("other")),
      vjp("other", [](Backward& b) {
        const Tensor y = b["other"];
        const Tensor over = b.is_number("self") ? ops::div(ops::div(b.scalar("self"), y), y)
                                                : ops::div(ops::div(b["self"], y), y);
        return ops::neg(ops::mul(b.grad(), ops::conj(over)));
      }, saves("self", "other")),
  },
};

OP(neg) {
  .schema = "neg(Tensor self) -> Tensor",
  .doc = "Negative of self, elementwise.",
  .forms = all_forms,
  .aliases = "negative",
  .flags = pointwise | linear,
  .meta = meta_neg,
  .cpu = cpu::unary<scalar::neg>,
  .derivatives = {vjp("self", [](Backward& b) { return ops::neg(b.grad()); })},
};
#endif
