// The larger and the smaller of two elements.
#include "kernels/scalar/minmax.h"
#include "kernels/cpu/elementwise/pointwise.h"

namespace facula::scalar {

struct fmax {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return a >= b || b != b ? a : b;
  }
};

struct fmin {
  static constexpr unsigned dtypes = boolean | real_numbers | wide_unsigned;
  template <class T>
  static T call(T a, T b) {
    return a <= b || b != b ? a : b;
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/minmax.h"

#include "ops/elementwise/logical.h"
#include "ops/elementwise/winner_gradient.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

void meta_ordered(Meta& m) {
  meta::binary(m);
  check_type(!is_complex(m.results[0].dtype), m.op_name(), " not implemented for complex tensors.");
}

// fmax and fmin pass over a nan: self won where it is beyond other or other is nan.
template <auto Beyond>
Tensor won_by_self(Backward& b) {
  return ops::logical_or(Beyond(b["self"], b["other"]), ops::isnan(b["other"]));
}
template <auto Beyond>
Tensor self_past_nan(Backward& b) {
  const Tensor lost = ops::logical_not(won_by_self<Beyond>(b));
  return winner_gradient(b.grad(), b["self"], b["other"], lost);
}
template <auto Beyond>
Tensor other_past_nan(Backward& b) {
  return winner_gradient(b.grad(), b["self"], b["other"], won_by_self<Beyond>(b));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(maximum){
    .schema = "maximum(Tensor self, Tensor other) -> Tensor",
    .doc = "Larger of self and other, elementwise; nan where either is.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::maximum>,
    .derivatives = {vjp(
                        "self",
                        [](Backward& b) { return gradient_where_won<is_less>(b, "self", "other"); },
                        saves("self", "other")),
                    vjp(
                        "other",
                        [](Backward& b) { return gradient_where_won<is_less>(b, "other", "self"); },
                        saves("other", "self"))},
};

OP(minimum){
    .schema = "minimum(Tensor self, Tensor other) -> Tensor",
    .doc = "Smaller of self and other, elementwise; nan where either is.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::minimum>,
    .derivatives =
        {vjp(
             "self", [](Backward& b) { return gradient_where_won<is_greater>(b, "self", "other"); },
             saves("self", "other")),
         vjp(
             "other",
             [](Backward& b) { return gradient_where_won<is_greater>(b, "other", "self"); },
             saves("other", "self"))},
};

OP(fmax){
    .schema = "fmax(Tensor self, Tensor other) -> Tensor",
    .doc = "Larger of self and other, elementwise; the other one where one is nan.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::fmax>,
    .derivatives = {vjp("self", self_past_nan<is_greater>, saves("self", "other")),
                    vjp("other", other_past_nan<is_greater>, saves("self", "other"))},
};

OP(fmin){
    .schema = "fmin(Tensor self, Tensor other) -> Tensor",
    .doc = "Smaller of self and other, elementwise; the other one where one is nan.",
    .forms = function | method | out,
    .flags = pointwise,
    .meta = meta_ordered,
    .cpu = cpu::binary<scalar::fmin>,
    .derivatives = {vjp("self", self_past_nan<is_less>, saves("self", "other")),
                    vjp("other", other_past_nan<is_less>, saves("self", "other"))},
};
#endif
