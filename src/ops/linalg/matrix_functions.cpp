// Functions of square matrices.
#include "ops/linalg/matrix_functions.h"

#include "dispatch/batch.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/matrix_exp.h"
#include "ops/create/creation.h"
#include "ops/linalg/matrix_checks.h"
#include "ops/shape/cat.h"
#include "ops/shape/split.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace matrices;

void meta_matrix_exp(Meta& m, const Tensor& self) {
  constexpr const char* op = "linalg.matrix_exp";
  check_square(self, op);
  check_floating(self, op);
  m.result(0, self.sizes(), self.dtype());
}

// Mathias, A chain rule for matrix functions and applications (1996): the derivative at A in the
// direction E is the upper right block of the exponential of [[A, E], [0, A]]; its adjoint is that
// at A^H.
Tensor matrix_exp_gradient(Backward& b) {
  const Tensor A = ops::mH(b["self"]);
  const int64_t n = A.size(-1);
  const Tensor above[] = {A, b.grad()}, below[] = {ops::zeros_like(A), A};
  const Tensor rows[] = {ops::cat(above, -1), ops::cat(below, -1)};
  const Tensor whole = ops::linalg_matrix_exp(ops::cat(rows, -2));
  return ops::narrow(ops::narrow(whole, -2, 0, n), -1, n, n);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_matrix_exp){
    .schema = "linalg_matrix_exp(Tensor self) -> Tensor",
    .doc = "Exponentials of square matrices (..., n, n).",
    .forms = function | out,
    .python_module = "linalg",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_matrix_exp>,
    .cpu = cpu::matrix_exp_kernel,
    .derivatives = {vjp("self", matrix_exp_gradient, saves("self"))},
    .batch = batch::leading,
};
OP(matrix_exp){
    .schema = "matrix_exp(Tensor self) -> Tensor",
    .doc = "The same as linalg.matrix_exp.",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<&ops::linalg_matrix_exp>,
};
