#include "ops/linalg/differentiation.h"

#include "core/autograd_meta.h"
#include "dispatch/modes_watch.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/eigen.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/checks.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula::linalg {

void column_result(Meta& m, int i, IntSpan sizes, DType dtype) {
  m.result(i, sizes, dtype, column_strides(sizes));
}

bool may_be_differentiated(const Tensor& t) {
  // Under transforms the tensor is a wrapper, and its history may lie at any level.
  if (thread_state.interpreters != nullptr) return true;
  const AutogradMeta* meta = t->autograd;
  if (meta == nullptr) return false;
  return meta->tangent || (thread_state.grad_enabled && (meta->requires_grad || meta->grad_fn));
}

Tensor with_diagonal(const Tensor& square, const Tensor& diagonal) {
  return ops::diagonal_scatter(square, ops::to(diagonal, square.dtype()), 0, -2, -1);
}

void check_phase(const Tensor& turned, const char* op, const char* vectors) {
  constexpr double tolerance = 1e-2;
  // Batched and recorded values have no numbers to look at.
  const bool unknown = turned.is_meta() || thread_state.interpreters || modes_watch();
  if (!is_complex(turned.dtype()) || unknown || turned.numel() == 0) return;
  const Tensor phase = ops::imag(ops::diagonal(ops::detach(turned), 0, -2, -1));
  const double largest = ops::item(ops::amax(ops::abs(phase))).to<double>();
  check(!(largest > tolerance), op, "(): the loss depends on the phase of the ", vectors,
        ", which is arbitrary: such a loss has no derivative");
}

std::string where_of(const Tensor& status, int64_t i) {
  return status.dim() == 0 ? std::string() : concat(" of matrix ", i);
}

void check_converged(const Tensor& status, const char* op, const char* values) {
  for (int64_t i = 0; i < status.numel(); ++i) {
    const int32_t code = status.data<int32_t>()[i];
    if (code == 0) continue;
    if (code == cpu::not_finite)
      throw Error(ErrorKind::LinAlg, op, "(): expected finite elements; got an infinity or NaN",
                  where_of(status, i));
    throw Error(ErrorKind::LinAlg, op, "(): the ", values, where_of(status, i),
                " did not converge (LAPACK's code ", code,
                "): it is ill-conditioned, or has too many repeated ones");
  }
}

}  // namespace facula::linalg
