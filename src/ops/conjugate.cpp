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

OP(_conj_physical){
    .schema = "_conj_physical(Tensor self) -> Tensor",
    .doc = "The complex conjugate of every element, in memory of its own.",
    .forms = function_method,
    .flags = pointwise,
    .meta = meta::unary,
    .cpu = cpu::unary<scalar::conj_physical>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::_conj_physical(b.grad()); })},
};

namespace {
Tensor conj_physical(const Tensor& self) {
  return is_complex(self.dtype()) ? ops::_conj_physical(self) : self;
}
}  // namespace

OP(conj_physical){
    .schema = "conj_physical(Tensor self) -> Tensor",
    .doc = "The complex conjugate of self, computed now; a real tensor is returned as it is.",
    .forms = all_forms,
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<conj_physical>,
};
#endif
