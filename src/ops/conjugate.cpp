// Conjugation that is computed; the views that only set a bit are in view.cpp.
#include "kernels/cpu/pointwise.h"
#include "kernels/scalar/complex_math.h"

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

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/conjugate.h"
#include "ops/meta_rules.h"

using namespace facula;

OP(conj_physical) {
  .schema = "conj_physical(Tensor self) -> Tensor",
  .doc = "The complex conjugate, computed now; real tensors are copied.",
  .forms = all_forms,
  .flags = pointwise,
  .meta = meta::unary,
  .cpu = cpu::unary<scalar::conj_physical>,
  .derivatives = {vjp("self", [](Backward& b) { return ops::conj_physical(b.grad()); })},
};
#endif
