// Forward-mode rules that several records share (dispatch/forward_families.h).
#include "dispatch/forward.h"
#include "ops/elementwise/arithmetic.h"

namespace facula::forward {

void bilinear(Forward& f) {
  Tensor sum;
  for (int i = 0; i < 2; ++i) {
    if (!f.tangent(i).defined()) continue;
    const Tensor part = f.run_with(i, f.tangent(i));
    sum = sum.defined() ? ops::add(sum, part) : part;
  }
  f.set(0, sum);
}

}  // namespace facula::forward
