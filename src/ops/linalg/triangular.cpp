// Cholesky factors and what is solved with triangular matrices.
#include "ops/linalg/triangular.h"

#include <algorithm>

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "dispatch/warn_once.h"
#include "kernels/cpu/linalg/triangular.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/inverse.h"
#include "ops/matmul/matmul.h"
#include "ops/meta_rules.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/repeat.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

// --- Cholesky

void meta_cholesky(Meta& m, const Tensor& self, bool, bool) {
  check_square(self, "linalg.cholesky");
  check_solvable(self.dtype(), "linalg.cholesky");
  m.result(0, self.sizes(), self.dtype(), column_strides(self.sizes()));
  m.result(1, leading(self), DType::Int32);
}

void cholesky_with_status(const Tensor& self, bool upper, bool check_errors, const Tensor& factor,
                          const Tensor& status) {
  cpu::cholesky(self, upper, factor, status);
  if (check_errors) ops::_linalg_check_errors(status, "linalg.cholesky_ex", self.dim() == 2);
}

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  const auto [factor, status] = ops::linalg_cholesky_ex(self, upper);
  ops::_linalg_check_errors(status, "linalg.cholesky", self.dim() == 2);
  return factor;
}

// A^-H S A^-1 for the lower triangular A.
Tensor between_inverses(const Tensor& A, const Tensor& S) {
  const Tensor left = ops::linalg_solve_triangular(ops::mH(A), S, true);
  return ops::linalg_solve_triangular(A, left, false, false);
}

// Murray, Differentiation of the Cholesky decomposition (2016): of L^H gL the lower triangle with
// half of its diagonal counts.
Tensor cholesky_gradient(Backward& b) {
  const bool upper = b.flag("upper");
  const Tensor L = upper ? ops::mH(b.result(0)) : b.result(0);
  const Tensor grad = upper ? ops::mH(b.grad()) : b.grad();
  const Tensor product = ops::matmul(ops::mH(L), grad);
  const Tensor below = ops::tril(product, -1);
  const Tensor diagonal = ops::real(ops::diagonal(product, 0, -2, -1));
  const Tensor whole =
      ops::add(ops::add(below, ops::mH(below)), ops::diag_embed(diagonal, 0, -2, -1));
  return between_inverses(L, ops::mul(whole, 0.5));
}

// --- triangular systems

void meta_solve_triangular(Meta& m, const Tensor& self, const Tensor& B, bool, bool left, bool) {
  constexpr const char* op = "linalg.solve_triangular";
  check_square(self, op);
  check_matrices(B, op, "B");
  check(self.dtype() == B.dtype(), op, "(): A and B must have one dtype; got ", name(self.dtype()),
        " and ", name(B.dtype()));
  check_solvable(self.dtype(), op);
  check(self.size(-1) == B.size(left ? -2 : -1), op,
        "(): shapes of A and B do not fit the equation ", left ? "AX = B" : "XA = B", "; got ",
        str(self.sizes()), " and ", str(B.sizes()));
  IntVec sizes = broadcast_sizes(leading(self), leading(B));
  sizes.push_back(B.size(-2));
  sizes.push_back(B.size(-1));
  m.result(0, sizes, B.dtype(), column_strides(sizes));
}

void solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left, bool unit,
                      const Tensor& X) {
  if (left) return cpu::solve_triangular(A, B, upper, unit, X);
  cpu::solve_triangular(cpu::matrix_transposed(A), cpu::matrix_transposed(B), !upper, unit,
                        cpu::matrix_transposed(X));
}

// With G = A^-H gX the gradient of B, that of A is the named triangle of -G X^H.
void solve_triangular_gradient(Backward& b) {
  const bool upper = b.flag("upper"), left = b.flag("left"), unit = b.flag("unitriangular");
  const Tensor G = ops::linalg_solve_triangular(ops::mH(b["self"]), b.grad(), !upper, left, unit);
  if (b.needs("B")) b.set("B", ops::sum_to_size(G, b.sizes("B")));
  if (!b.needs("self")) return;
  const Tensor adjoint = ops::mH(b["result"]);
  const Tensor product = left ? ops::matmul(G, adjoint) : ops::matmul(adjoint, G);
  const Tensor negative = ops::neg(ops::sum_to_size(product, b.sizes("self")));
  const int64_t off = unit ? 1 : 0;
  b.set("self", upper ? ops::triu(negative, off) : ops::tril(negative, -off));
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper,
                                            bool transpose, bool unitriangular) {
  static constinit std::atomic<bool> told{false};
  warn_once(told,
            "triangular_solve(): is deprecated in favour of linalg.solve_triangular; "
            "triangular_solve(B, A).solution is linalg.solve_triangular(A, B, upper=True)");
  check_matrices(self, "triangular_solve", "b");
  check_square(A, "triangular_solve");
  const Tensor M = transpose ? ops::mT(A) : A;
  IntVec sizes = broadcast_sizes(leading(A), leading(self));
  sizes.push_back(A.size(-2));
  sizes.push_back(A.size(-1));
  const Tensor copy = ops::mT(ops::clone(ops::mT(ops::expand(A, sizes)), MemoryFormat::Contiguous));
  return {ops::linalg_solve_triangular(M, self, upper != transpose, true, unitriangular), copy};
}

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  check_matrices(self, "cholesky_solve", "b");
  check_square(input2, "cholesky_solve");
  check(self.size(-2) == input2.size(-1),
        "cholesky_solve(): shapes of b and the factor do not fit; "
        "got ",
        str(self.sizes()), " and ", str(input2.sizes()));
  const Tensor first = upper ? ops::mH(input2) : input2, second = upper ? input2 : ops::mH(input2);
  return ops::linalg_solve_triangular(second, ops::linalg_solve_triangular(first, self, false),
                                      true);
}

// LinAlgError where a diagonal element is zero: such a factor has no inverse.
void check_diagonal(const Tensor& factor) {
  if (factor.numel() == 0) return;
  const Tensor zero = ops::to(ops::eq(ops::diagonal(factor, 0, -2, -1), 0), DType::Int32);
  const Tensor first = ops::add(ops::argmax(zero, -1), 1);
  const Tensor code = ops::to(ops::mul(first, ops::amax(zero, IntVec{-1})), DType::Int32);
  ops::_linalg_check_errors(code, "cholesky_inverse", factor.dim() == 2);
}

Tensor cholesky_inverse(const Tensor& self, bool upper) {
  check_square(self, "cholesky_inverse");
  check_solvable(self.dtype(), "cholesky_inverse");
  check_diagonal(self);
  const Tensor one = ops::eye(self.size(-1), self.dtype(), std::nullopt, self.device());
  return cholesky_solve(ops::expand(one, self.sizes()), self, upper);
}

// The gradient of a factor from that of the product A = L L^H or U^H U, as of any matrix: what is
// above or below the triangle is not cut off.
Tensor factor_gradient(const Tensor& factor, const Tensor& grad, bool upper) {
  const Tensor both = ops::add(grad, ops::mH(grad));
  return upper ? ops::matmul(factor, both) : ops::matmul(both, factor);
}

void cholesky_solve_gradient(Backward& b) {
  const bool upper = b.flag("upper");
  const Tensor factor = b["input2"];
  const Tensor G = ops::cholesky_solve(b.grad(), factor, upper);
  if (b.needs("self")) b.set("self", ops::sum_to_size(G, b.sizes("self")));
  if (!b.needs("input2")) return;
  const Tensor grad = ops::neg(ops::matmul(G, ops::mH(b["result"])));
  b.set("input2", ops::sum_to_size(factor_gradient(factor, grad, upper), b.sizes("input2")));
}

Tensor cholesky_inverse_gradient(Backward& b) {
  const Tensor inverse = b["result"];
  const Tensor grad = ops::neg(ops::matmul(inverse, ops::matmul(b.grad(), inverse)));
  return factor_gradient(b["self"], grad, b.flag("upper"));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_cholesky_ex){
    .schema =
        "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "
        "(Tensor L, Tensor info)",
    .doc =
        "Cholesky factors of Hermitian matrices (..., n, n), and for each 0 or the order of the "
        "first leading minor that is not positive.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "L",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_cholesky>,
    .cpu = typed_kernel<cholesky_with_status>,
    .derivatives = {vjp("self", cholesky_gradient, saves("L"))},
    .not_differentiable = names("info"),
    .batch = batch::leading,
};
OP(linalg_cholesky){
    .schema = "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    .doc =
        "Cholesky factors L, L L^H = self, of positive definite matrices (..., n, n); LinAlgError "
        "where one is not.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_cholesky>,
};
OP(linalg_solve_triangular){
    .schema =
        "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
        "bool unitriangular=False) -> Tensor",
    .doc =
        "X with self X = B, or X self = B, for triangular matrices self; leading sizes broadcast.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_solve_triangular>,
    .cpu = typed_kernel<solve_triangular>,
    .derivatives = {vjp(names("self", "B"), solve_triangular_gradient, saves("self", "result"))},
    .batch = batch::pointwise,
};
OP(triangular_solve){
    .schema =
        "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
        "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    .doc = "X with A X = self, or A^T X = self, for triangular matrices A, and a copy of A.",
    .forms = function | method | out,
    .out_name = "X",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<triangular_solve>,
};
OP(cholesky_solve){
    .schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    .doc = "X with A X = self for matrices A whose Cholesky factors are input2.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<cholesky_solve>,
    .derivatives = {vjp(names("self", "input2"), cholesky_solve_gradient,
                        saves("input2", "result"))},
    .batch = batch::pointwise,
};
OP(cholesky_inverse){
    .schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    .doc = "Inverses of matrices whose Cholesky factors are given.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<cholesky_inverse>,
    .derivatives = {vjp("self", cholesky_inverse_gradient, saves("self", "result"))},
    .batch = batch::leading,
};
