// Functions of square matrices: the exponential, the square root.
#include "ops/linalg/matrix_functions.h"

#include "dispatch/batch.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/matrix_exp.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/powers.h"
#include "ops/linalg/batch.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/eigen.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/cat.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

// --- the exponential

void meta_matrix_exp(Meta& m, const Tensor& self) {
  constexpr const char* op = "linalg.matrix_exp";
  check_square(self, op);
  check_floating(self.dtype(), op);
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

// --- X A + A X = Z

void check_lyapunov(const Tensor& A, const Tensor& Z) {
  constexpr const char* op = "_linalg_lyapunov";
  check_square(A, op);
  check(same_sizes(A.sizes(), Z.sizes()) && A.dtype() == Z.dtype(), op,
        "(): Z must have the shape and dtype of A; got ", str(Z.sizes()), " ", name(Z.dtype()),
        " and ", str(A.sizes()), " ", name(A.dtype()));
}

// In the basis of eigenvectors of A the equation falls apart into divisions.
Tensor lyapunov(const Tensor& A, const Tensor& Z) {
  check_lyapunov(A, Z);
  const auto [values, Q] = ops::_linalg_eigh(A);
  const Tensor adjoint = ops::mH(Q);
  const Tensor sums = ops::add(ops::unsqueeze(values, -2), ops::unsqueeze(values, -1));
  const Tensor turned = ops::div(ops::matmul(adjoint, ops::matmul(Z, Q)), sums);
  return ops::matmul(Q, ops::matmul(turned, adjoint));
}

// The equation is its own adjoint; dX solves X' A + A X' = dZ - X dA - dA X.
void lyapunov_gradient(Backward& b) {
  const Tensor grad = ops::_linalg_lyapunov(b["A"], b.grad());
  if (b.needs("Z")) b.set("Z", grad);
  if (!b.needs("A")) return;
  const Tensor adjoint = ops::mH(b["result"]);
  b.set("A", ops::neg(ops::add(ops::matmul(adjoint, grad), ops::matmul(grad, adjoint))));
}

// --- the square root

Tensor matrix_sqrth(const Tensor& self) {
  constexpr const char* op = "linalg.matrix_sqrth";
  check_square(self, op);
  check_floating(self.dtype(), op);
  check_solvable(self.dtype(), op);
  const auto [values, Q] = ops::_linalg_eigh(self);
  const Tensor roots = ops::sqrt(ops::clamp(values, Scalar(0)));
  return ops::matmul(ops::mul(Q, ops::unsqueeze(roots, -2)), ops::mH(Q));
}

// From X X = A: X dX + dX X = dA.
Tensor matrix_sqrth_gradient(Backward& b) {
  const Tensor grad = ops::mul(ops::add(b.grad(), ops::mH(b.grad())), 0.5);
  return ops::_linalg_lyapunov(b["result"], grad);
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
OP(linalg_matrix_sqrth){
    .schema = "linalg_matrix_sqrth(Tensor self) -> Tensor",
    .doc =
        "Square roots, Hermitian themselves, of positive semidefinite matrices (..., n, n), of "
        "which the lower triangle is read; negative eigenvalues count as zeros.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Explicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<matrix_sqrth>,
    .derivatives = {vjp("self", matrix_sqrth_gradient, saves("result"))},
    .batch = batch::leading,
};
OP(_linalg_lyapunov){
    .schema = "_linalg_lyapunov(Tensor A, Tensor Z) -> Tensor",
    .doc = "X with X A + A X = Z for Hermitian matrices A; derivatives of others are made of it.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<lyapunov>,
    .derivatives = {vjp(names("A", "Z"), lyapunov_gradient, saves("A", "result"))},
    .batch = batch::matrices,
};
