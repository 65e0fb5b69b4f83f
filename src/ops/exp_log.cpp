// Exponentials and logarithms.
#include "kernels/cpu/pointwise.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct log1p {
  static constexpr unsigned dtypes = floating | complex;
  template <class T>
  static T call(T x) {
    return math::log1p(x);
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/arithmetic.h"
#include "ops/exp_log.h"
#include "ops/meta_rules.h"

using namespace facula;

OP(log1p) {
  .schema = "log1p(Tensor self) -> Tensor",
  .doc = "Natural logarithm of 1 + self, elementwise; accurate near zero.",
  .forms = all_forms,
  .flags = pointwise,
  .meta = meta::unary_float,
  .cpu = cpu::unary<scalar::log1p>,
  .derivatives = {local("self", [](Backward& x) { return ops::div(1, ops::add(x["self"], 1)); },
                        saves("self"))},
};
#endif
