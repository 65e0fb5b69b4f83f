// Operations on bits.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct bitwise_and {
  static constexpr unsigned dtypes = boolean | integral | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct bitwise_or {
  static constexpr unsigned dtypes = boolean | integral | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct bitwise_xor {
  static constexpr unsigned dtypes = boolean | integral | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct bitwise_left_shift {
  static constexpr unsigned dtypes = integral;
  template <class T>
  static T call(T a, T b) {
    return math::lshift(a, b);
  }
};

struct bitwise_right_shift {
  static constexpr unsigned dtypes = integral;
  template <class T>
  static T call(T a, T b) {
    return math::rshift(a, b);
  }
};

struct bitwise_not {
  static constexpr unsigned dtypes = boolean | integral;
  template <class T>
  static T call(T x) {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/bitwise.h"

#include "dispatch/out_dtype.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

Tensor and_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_and(self, other.as_tensor())
                           : ops::bitwise_and(self, other.as_scalar());
}
Tensor iand_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_and_(self, other.as_tensor())
                           : ops::bitwise_and_(self, other.as_scalar());
}
Tensor or_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_or(self, other.as_tensor())
                           : ops::bitwise_or(self, other.as_scalar());
}
Tensor ior_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_or_(self, other.as_tensor())
                           : ops::bitwise_or_(self, other.as_scalar());
}
Tensor xor_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_xor(self, other.as_tensor())
                           : ops::bitwise_xor(self, other.as_scalar());
}
Tensor ixor_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_xor_(self, other.as_tensor())
                           : ops::bitwise_xor_(self, other.as_scalar());
}
Tensor lshift_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_left_shift(self, other.as_tensor())
                           : ops::bitwise_left_shift(self, other.as_scalar());
}
Tensor ilshift_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_left_shift_(self, other.as_tensor())
                           : ops::bitwise_left_shift_(self, other.as_scalar());
}
Tensor rshift_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_right_shift(self, other.as_tensor())
                           : ops::bitwise_right_shift(self, other.as_scalar());
}
Tensor irshift_method(const Tensor& self, const Value& other) {
  return other.is_tensor() ? ops::bitwise_right_shift_(self, other.as_tensor())
                           : ops::bitwise_right_shift_(self, other.as_scalar());
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(bitwise_and_Tensor){
    .schema = "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "And of the bits of self and other, elementwise; integers or bool.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_of_tensor,
    .cpu = cpu::binary<scalar::bitwise_and>,
};

OP(bitwise_or_Tensor){
    .schema = "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Or of the bits of self and other, elementwise; integers or bool.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_of_tensor,
    .cpu = cpu::binary<scalar::bitwise_or>,
};

OP(bitwise_xor_Tensor){
    .schema = "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Exclusive or of the bits of self and other, elementwise; integers or bool.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_of_tensor,
    .cpu = cpu::binary<scalar::bitwise_xor>,
};

OP(bitwise_left_shift_Tensor){
    .schema = "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Bits of self moved by other places to the left; integers.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_of_tensor,
    .cpu = cpu::binary<scalar::bitwise_left_shift>,
};

OP(bitwise_right_shift_Tensor){
    .schema = "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc =
        "Bits of self moved by other places to the right, copies of the sign coming in; integers.",
    .forms = all_forms,
    .out_name = "Tensor_out",
    .flags = pointwise,
    .numbers = names("self", "other"),
    .meta = meta::binary_of_tensor,
    .cpu = cpu::binary<scalar::bitwise_right_shift>,
};

OP(bitwise_not){
    .schema = "bitwise_not(Tensor self) -> Tensor",
    .doc = "Complement of the bits of self, elementwise; integers or bool.",
    .forms = all_forms,
    .flags = pointwise | exact_out,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::bitwise_not>,
};

OP(dunder_and_Tensor){
    .schema = "__and__.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Python's self & other: bitwise_and under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<and_method>,
};

OP(dunder_iand_Tensor){
    .schema = "__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .doc = "Python's self &= other: bitwise_and_ under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<iand_method>,
};

OP(dunder_or_Tensor){
    .schema = "__or__.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Python's self | other: bitwise_or under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<or_method>,
};

OP(dunder_ior_Tensor){
    .schema = "__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .doc = "Python's self |= other: bitwise_or_ under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<ior_method>,
};

OP(dunder_xor_Tensor){
    .schema = "__xor__.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Python's self ^ other: bitwise_xor under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<xor_method>,
};

OP(dunder_ixor_Tensor){
    .schema = "__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .doc = "Python's self ^= other: bitwise_xor_ under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<ixor_method>,
};

OP(dunder_lshift_Tensor){
    .schema = "__lshift__.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Python's self << other: bitwise_left_shift under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<lshift_method>,
};

OP(dunder_ilshift_Tensor){
    .schema = "__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .doc = "Python's self <<= other: bitwise_left_shift_ under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<ilshift_method>,
};

OP(dunder_rshift_Tensor){
    .schema = "__rshift__.Tensor(Tensor self, Tensor other) -> Tensor",
    .doc = "Python's self >> other: bitwise_right_shift under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<rshift_method>,
};

OP(dunder_irshift_Tensor){
    .schema = "__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .doc = "Python's self >>= other: bitwise_right_shift_ under the name of Python's operator.",
    .forms = method,
    .composite = Composite::Implicit,
    .numbers = names("other"),
    .any = typed_kernel<irshift_method>,
};
#endif
