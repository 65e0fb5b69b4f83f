// Systems of linear equations with square matrices.
#include "ops/linalg/solve.h"

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/lu.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/batch.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/inverse.h"
#include "ops/linalg/lu.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

// Whether B is a vector, or one for each matrix of A.
bool has_vectors(IntSpan A, IntSpan B) {
  return B.size() == 1 || std::ranges::equal(B, A.first(A.size() - 1));
}

void meta_solve(Meta& m, const Tensor& A, const Tensor& B, bool left, bool) {
  constexpr const char* op = "linalg.solve";
  check_square(A, op);
  check_solvable(A.dtype(), op);
  check_same_dtype(A, B, op);
  const bool vectors = has_vectors(A.sizes(), B.sizes());
  check(left || !vectors, op, "(): expected matrices B of the equation XA = B; got ",
        str(A.sizes()), " and ", str(B.sizes()));
  if (!vectors) check_matrices(B, op, "B");
  const int64_t rows = B.size(vectors || !left ? -1 : -2);
  check(A.size(-1) == rows, op, "(): shapes of A and B do not fit the equation ",
        left ? "AX = B" : "XA = B", "; got ", str(A.sizes()), " and ", str(B.sizes()));
  IntVec sizes;
  if (vectors)
    sizes = with_sizes(leading(A), {rows});
  else
    sizes = with_sizes(broadcast_sizes(leading(A), leading(B)), {B.size(-2), B.size(-1)});
  if (left && sizes.size() > 1)
    m.result(0, sizes, B.dtype(), column_strides(sizes));
  else
    m.result(0, sizes, B.dtype());
  m.result(1, A.sizes(), A.dtype(), column_strides(A.sizes()));
  m.result(2, A.sizes().first(A.sizes().size() - 1), DType::Int32);
  m.result(3, leading(A), DType::Int32);
}

// Each vector as a matrix of one column, as a view.
Tensor as_columns(const Tensor& t) {
  const IntVec sizes = with_sizes(t.sizes(), {1}), strides = with_sizes(t.strides(), {1});
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

void solve_with_factors(const Tensor& A, const Tensor& B, bool left, bool check_errors,
                        const Tensor& X, const Tensor& LU, const Tensor& pivots,
                        const Tensor& info) {
  cpu::lu_factor(A, LU, pivots, info);
  const bool vectors = has_vectors(A.sizes(), B.sizes());
  cpu::lu_solve(LU, pivots, vectors ? as_columns(B) : B, left, false, vectors ? as_columns(X) : X);
  if (check_errors) ops::_linalg_check_errors(info, "linalg.solve_ex", A.dim() == 2);
}

// With G = A^-H gX the gradient of B, that of A is -G X^H.
void solve_gradient(Backward& b) {
  const bool left = b.flag("left"), vectors = has_vectors(b.sizes("A"), b.sizes("B"));
  const Tensor grad = vectors ? ops::unsqueeze(b.grad(), -1) : b.grad();
  // The factors kept have no derivative: gradients of gradients need new ones.
  const Tensor G = thread_state.grad_enabled
                       ? ops::linalg_solve(ops::mH(b["A"]), grad, left)
                       : ops::linalg_lu_solve(b["LU"], b["pivots"], grad, left, true);
  if (b.needs("B")) b.set("B", ops::sum_to_size(vectors ? ops::squeeze(G, -1) : G, b.sizes("B")));
  if (!b.needs("A")) return;
  const Tensor X = vectors ? ops::unsqueeze(b["result"], -1) : b["result"];
  const Tensor outer = left ? ops::matmul(G, ops::mH(X)) : ops::matmul(ops::mH(X), G);
  b.set("A", ops::neg(ops::sum_to_size(outer, b.sizes("A"))));
}

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left,
                                           bool check_errors) {
  const auto [X, LU, pivots, info] = ops::_linalg_solve_ex(A, B, left, check_errors);
  return {X, info};
}

Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  const auto [X, LU, pivots, info] = ops::_linalg_solve_ex(A, B, left);
  ops::_linalg_check_errors(info, "linalg.solve", A.dim() == 2);
  return X;
}

// --- tensors as matrices

int64_t product(IntSpan sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

Tensor tensorinv(const Tensor& self, int64_t ind) {
  check(ind > 0, "linalg.tensorinv(): expected a positive ind; got ", ind);
  const size_t split = std::min(static_cast<size_t>(ind), self.sizes().size());
  const IntSpan first = self.sizes().first(split), last = self.sizes().subspan(split);
  check(product(first) == product(last),
        "linalg.tensorinv(): expected as many elements before dimension ind as behind it; got ",
        product(first), " and ", product(last));
  const Tensor matrix = ops::reshape(self, IntVec{product(first), product(last)});
  const auto [inverse, info] = ops::linalg_inv_ex(matrix);
  ops::_linalg_check_errors(info, "linalg.tensorinv", true);
  IntVec sizes(last);
  for (int64_t n : first) sizes.push_back(n);
  return ops::reshape(inverse, sizes);
}

Tensor tensorsolve(const Tensor& self, const Tensor& other, const std::optional<IntSpan>& dims) {
  Tensor A = self;
  if (dims) {
    IntVec last;
    for (size_t i = 0; i < dims->size(); ++i)
      last.push_back(self.dim() - static_cast<int64_t>(dims->size() - i));
    A = ops::movedim(self, IntVec(*dims), last);
  }
  const size_t split = std::min(other.sizes().size(), A.sizes().size());
  const IntVec sizes(A.sizes().subspan(split));
  const int64_t equations = other.numel(), unknowns = product(sizes);
  check(equations == unknowns, "linalg.tensorsolve(): expected as many equations as unknowns; got ",
        equations, " and ", unknowns);
  const Tensor matrix = ops::reshape(A, IntVec{equations, unknowns});
  return ops::reshape(ops::linalg_solve(matrix, ops::flatten(other)), sizes);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_linalg_solve_ex){
    .schema =
        "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
        "(Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    .doc = "As linalg.solve_ex, with the LU factors of A.",
    .forms = function | out,
    .out_name = "result",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_solve>,
    .cpu = typed_kernel<solve_with_factors>,
    .derivatives = {vjp(names("A", "B"), solve_gradient, saves("A", "LU", "pivots", "result"))},
    .not_differentiable = names("LU", "pivots", "info"),
    .batch = batch::systems,
};
OP(linalg_solve_ex){
    .schema =
        "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
        "(Tensor result, Tensor info)",
    .doc =
        "X with A X = B, or X A = B, for square matrices (..., n, n), and for each matrix 0 or the "
        "number of the first pivot that is zero.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<linalg_solve_ex>,
};
OP(linalg_solve){
    .schema = "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    .doc =
        "X with A X = B, or X A = B, for square matrices A (..., n, n) and matrices or vectors B; "
        "leading sizes broadcast. LinAlgError where a matrix is singular.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_solve>,
};
OP(linalg_tensorinv){
    .schema = "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    .doc = "The inverse of self as a map from its dimensions behind the first ind to those.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<tensorinv>,
};
OP(linalg_tensorsolve){
    .schema = "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    .doc =
        "X with tensordot(self, X, X.ndim) = other; dims name dimensions of self that are moved to "
        "the end before.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<tensorsolve>,
};
