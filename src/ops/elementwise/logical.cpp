// Logic on truth values: an element is true where it is not zero.
#include "kernels/cpu/elementwise/pointwise.h"

namespace facula::scalar {

struct logical_and {
  static constexpr unsigned dtypes = all_kinds;
  template <class T>
  static bool call(T a, T b) {
    // Without branches, and bools as bytes: so that loops vectorise.
    if constexpr (std::is_same_v<T, bool>)
      return static_cast<bool>(static_cast<uint8_t>(a) & static_cast<uint8_t>(b));
    else
      return !(a == T(0)) & !(b == T(0));
  }
};

struct logical_or {
  static constexpr unsigned dtypes = all_kinds;
  template <class T>
  static bool call(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return static_cast<bool>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
    else
      return !(a == T(0)) | !(b == T(0));
  }
};

struct logical_xor {
  static constexpr unsigned dtypes = all_kinds;
  template <class T>
  static bool call(T a, T b) {
    return !(a == T(0)) != !(b == T(0));
  }
};

struct logical_not {
  static constexpr unsigned dtypes = all_kinds;
  template <class T>
  static bool call(T x) {
    return x == T(0);
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/meta_rules.h"

using namespace facula;

OP(logical_and){
    .schema = "logical_and(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether both self and other are nonzero, elementwise; a bool tensor.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::compare,
    .cpu = cpu::binary<scalar::logical_and>,
    .not_differentiable = names("result"),
};

OP(logical_or){
    .schema = "logical_or(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether self or other is nonzero, elementwise; a bool tensor.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::compare,
    .cpu = cpu::binary<scalar::logical_or>,
    .not_differentiable = names("result"),
};

OP(logical_xor){
    .schema = "logical_xor(Tensor self, Tensor other) -> Tensor",
    .doc = "Whether exactly one of self and other is nonzero, elementwise; a bool tensor.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::compare,
    .cpu = cpu::binary<scalar::logical_xor>,
    .not_differentiable = names("result"),
};

OP(logical_not){
    .schema = "logical_not(Tensor self) -> Tensor",
    .doc = "Whether self is zero, elementwise; a bool tensor.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::unary_bool,
    .cpu = cpu::unary<scalar::logical_not>,
    .not_differentiable = names("result"),
};
#endif
