// Common divisors and multiples of integers.
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

struct gcd {
  static constexpr unsigned dtypes = integral;
  template <class T>
  static T call(T a, T b) {
    return math::gcd(a, b);
  }
};

struct lcm {
  static constexpr unsigned dtypes = integral;
  template <class T>
  static T call(T a, T b) {
    return math::lcm(a, b);
  }
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/elementwise/divisors.h"

#include "ops/meta_rules.h"

using namespace facula;

OP(gcd){
    .schema = "gcd(Tensor self, Tensor other) -> Tensor",
    .doc = "Greatest common divisor of self and other, elementwise; integers, not negative.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::gcd>,
};

OP(lcm){
    .schema = "lcm(Tensor self, Tensor other) -> Tensor",
    .doc = "Least common multiple of self and other, elementwise; integers, not negative.",
    .forms = all_forms,
    .flags = pointwise,
    .meta = meta::binary,
    .cpu = cpu::binary<scalar::lcm>,
};
#endif
