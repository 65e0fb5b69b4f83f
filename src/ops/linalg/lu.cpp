// LU factors, their parts, and what is solved with them.
#include "ops/linalg/lu.h"

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "dispatch/warn_once.h"
#include "kernels/cpu/linalg/lu.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/batch.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/inverse.h"
#include "ops/linalg/triangular.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/cat.h"
#include "ops/shape/repeat.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

void meta_lu_factor(Meta& m, const Tensor& A, bool, bool) {
  check_matrices(A, "linalg.lu_factor", "A");
  check_solvable(A.dtype(), "linalg.lu_factor");
  m.result(0, A.sizes(), A.dtype(), column_strides(A.sizes()));
  m.result(1, with_sizes(leading(A), {std::min(A.size(-1), A.size(-2))}), DType::Int32);
  m.result(2, leading(A), DType::Int32);
}

void check_pivoting(bool pivot) {
  check(pivot, "linalg.lu_factor(): LU without pivoting is not implemented on the CPU");
}

void lu_factor(const Tensor& A, bool pivot, bool check_errors, const Tensor& LU,
               const Tensor& pivots, const Tensor& info) {
  check_pivoting(pivot);
  cpu::lu_factor(A, LU, pivots, info);
  if (check_errors) ops::_linalg_check_errors(info, "linalg.lu_factor_ex", A.dim() == 2);
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = ops::linalg_lu_factor_ex(A, pivot);
  ops::_linalg_check_errors(info, "linalg.lu_factor", A.dim() == 2);
  return {LU, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu_with_info(const Tensor& self, bool pivot, bool check_errors) {
  return ops::linalg_lu_factor_ex(self, pivot, check_errors);
}

// --- parts

void meta_lu_unpack(Meta& m, const Tensor& LU, const Tensor& pivots, bool unpack_data,
                    bool unpack_pivots) {
  check_matrices(LU, "lu_unpack", "LU_data");
  const int64_t rows = LU.size(-2), cols = LU.size(-1), k = std::min(rows, cols);
  if (unpack_pivots) {
    check(pivots.dtype() == DType::Int32, "lu_unpack(): LU_pivots must be int32; got ",
          name(pivots.dtype()));
    const IntVec expected = with_sizes(leading(LU), {k});
    check_kind(ErrorKind::Value, std::ranges::equal(pivots.sizes(), expected),
               "lu_unpack(): expected LU_pivots to have shape ", str(expected), "; got ",
               str(pivots.sizes()));
  }
  const IntVec none{0};
  m.result(0, unpack_pivots ? with_sizes(leading(LU), {rows, rows}) : none, LU.dtype());
  m.result(1, unpack_data ? with_sizes(leading(LU), {rows, k}) : none, LU.dtype());
  m.result(2, unpack_data ? with_sizes(leading(LU), {k, cols}) : none, LU.dtype());
}

void lu_unpack(const Tensor& LU, const Tensor& pivots, bool unpack_data, bool unpack_pivots,
               const Tensor& P, const Tensor& L, const Tensor& U) {
  cpu::lu_unpack(LU, pivots, unpack_pivots ? P : Tensor(), unpack_data ? L : Tensor(),
                 unpack_data ? U : Tensor());
}

Tensor first_rows(const Tensor& t, int64_t n) { return ops::narrow(t, -2, 0, n); }
Tensor rows_from(const Tensor& t, int64_t n) { return ops::narrow(t, -2, n, t.size(-2) - n); }
Tensor first_columns(const Tensor& t, int64_t n) { return ops::narrow(t, -1, 0, n); }
Tensor columns_from(const Tensor& t, int64_t n) { return ops::narrow(t, -1, n, t.size(-1) - n); }

// What stands strictly below the diagonal of `below` and on and above that of `above`, in one
// matrix: the way factors are kept.
Tensor packed(const Tensor& below, const Tensor& above) {
  const int64_t rows = below.size(-2), cols = above.size(-1), k = std::min(rows, cols);
  const Tensor square =
      ops::add(ops::tril(first_rows(below, k), -1), ops::triu(first_columns(above, k)));
  if (rows > cols) return ops::cat(std::vector<Tensor>{square, rows_from(below, k)}, -2);
  if (rows < cols) return ops::cat(std::vector<Tensor>{square, columns_from(above, k)}, -1);
  return square;
}

Tensor lu_unpack_gradient(Backward& b) {
  const IntSpan sizes = b.sizes("LU_data");
  const int64_t rows = sizes[sizes.size() - 2], cols = sizes.back(), k = std::min(rows, cols);
  Tensor L = b.grad(1), U = b.grad(2);
  if (!b.flag("unpack_data") || (!L.defined() && !U.defined())) return {};
  if (!L.defined()) L = ops::new_zeros(U, with_sizes(leading(sizes), {rows, k}));
  if (!U.defined()) U = ops::new_zeros(L, with_sizes(leading(sizes), {k, cols}));
  return packed(L, U);
}

// L^-H X, U^-H X and X U^-H for square L and U.
Tensor over_lower(const Tensor& L, const Tensor& X) {
  return ops::linalg_solve_triangular(ops::mH(L), X, true, true, true);
}
Tensor over_upper(const Tensor& U, const Tensor& X) {
  return ops::linalg_solve_triangular(ops::mH(U), X, false, false);
}

// The gradient of A = P L U. With square factors L^-1 dL and dU U^-1 are the triangles of
// L^-1 P^T dA U^-1. Of a matrix with more rows, L2 = A2 U^-1 below the square; with more columns
// U2 = L^-1 A2 beside it.
Tensor lu_gradient(const Tensor& P, const Tensor& L, const Tensor& U, const Tensor& L_grad,
                   const Tensor& U_grad) {
  const int64_t rows = L.size(-2), cols = U.size(-1), k = std::min(rows, cols);
  const Tensor L1 = first_rows(L, k), U1 = first_columns(U, k);
  Tensor gL = first_rows(L_grad, k), gU = first_columns(U_grad, k), rest;
  if (rows > cols) {
    rest = over_upper(U1, rows_from(L_grad, k));
    gU = ops::sub(gU, ops::matmul(ops::mH(rows_from(L, k)), rest));
  } else if (rows < cols) {
    rest = over_lower(L1, columns_from(U_grad, k));
    gL = ops::sub(gL, ops::matmul(rest, ops::mH(columns_from(U, k))));
  }
  const Tensor inner = ops::add(ops::tril(ops::matmul(ops::mH(L1), gL), -1),
                                ops::triu(ops::matmul(gU, ops::mH(U1))));
  Tensor grad = over_upper(U1, over_lower(L1, inner));
  if (rest.defined()) grad = ops::cat(std::vector<Tensor>{grad, rest}, rows > cols ? -2 : -1);
  return ops::matmul(P, grad);
}

Tensor lu_factor_gradient(Backward& b) {
  const auto [P, L, U] = ops::lu_unpack(b["LU"], ops::detach(b["pivots"]));
  const int64_t k = std::min(L.size(-2), U.size(-1));
  return lu_gradient(P, L, U, first_columns(b.grad(), k), first_rows(b.grad(), k));
}

// --- the three factors

void meta_lu(Meta& m, const Tensor& A, bool) {
  check_matrices(A, "linalg.lu", "A");
  check_solvable(A.dtype(), "linalg.lu");
  const int64_t rows = A.size(-2), cols = A.size(-1), k = std::min(rows, cols);
  m.result(0, with_sizes(leading(A), {rows, rows}), A.dtype());
  m.result(1, with_sizes(leading(A), {rows, k}), A.dtype());
  m.result(2, with_sizes(leading(A), {k, cols}), A.dtype());
}

void linalg_lu(const Tensor& A, bool pivot, const Tensor& P, const Tensor& L, const Tensor& U) {
  check_pivoting(pivot);
  const auto [LU, pivots, info] = ops::linalg_lu_factor_ex(A);
  cpu::lu_unpack(LU, pivots, P, L, U);
}

Tensor linalg_lu_gradient(Backward& b) {
  const Tensor L = b["L"], U = b["U"];
  Tensor gL = b.grad(1), gU = b.grad(2);
  if (!gL.defined() && !gU.defined()) return {};
  if (!gL.defined()) gL = ops::new_zeros(L, IntVec(L.sizes()));
  if (!gU.defined()) gU = ops::new_zeros(U, IntVec(U.sizes()));
  return lu_gradient(b["P"], L, U, gL, gU);
}

// --- systems with known factors

void meta_lu_solve(Meta& m, const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                   bool) {
  constexpr const char* op = "linalg.lu_solve";
  check_square(LU, op);
  check_solvable(LU.dtype(), op);
  check_same_dtype(LU, B, op);
  check(pivots.dtype() == DType::Int32, op, "(): pivots must be int32; got ", name(pivots.dtype()));
  check(pivots.dim() > 0 && pivots.size(-1) == LU.size(-1), op,
        "(): expected a pivot for each row of LU; got ", str(pivots.sizes()));
  check(std::ranges::equal(pivots.sizes(), LU.sizes().first(LU.sizes().size() - 1)), op,
        "(): expected pivots of as many matrices as LU has; got ", str(pivots.sizes()), " and ",
        str(LU.sizes()));
  check_matrices(B, op, "B");
  check(LU.size(-1) == B.size(left ? -2 : -1), op, "(): shapes of A and B do not fit the equation ",
        left ? "AX = B" : "XA = B", "; got ", str(LU.sizes()), " and ", str(B.sizes()));
  const IntVec sizes =
      with_sizes(broadcast_sizes(leading(LU), leading(B)), {B.size(-2), B.size(-1)});
  if (left)
    m.result(0, sizes, B.dtype(), column_strides(sizes));
  else
    m.result(0, sizes, B.dtype());
}

// With A = P L U: the gradient of B by the other of A and its adjoint, that of A from both, and
// those of L and U from that.
void lu_solve_gradient(Backward& b) {
  const bool left = b.flag("left"), adjoint = b.flag("adjoint");
  const Tensor LU = b["LU"], pivots = b["pivots"];
  const Tensor G = ops::linalg_lu_solve(LU, pivots, b.grad(), left, !adjoint);
  if (b.needs("B")) b.set("B", ops::sum_to_size(G, b.sizes("B")));
  if (!b.needs("LU")) return;
  const Tensor X = b["result"], first = adjoint ? X : G, second = adjoint ? G : X;
  const Tensor outer =
      left ? ops::matmul(first, ops::mH(second)) : ops::matmul(ops::mH(second), first);
  const Tensor A_grad = ops::neg(ops::sum_to_size(outer, b.sizes("LU")));
  const auto [P, L, U] = ops::lu_unpack(LU, pivots);
  const Tensor permuted = ops::matmul(ops::mT(P), A_grad);
  b.set("LU", packed(ops::matmul(permuted, ops::mH(U)), ops::matmul(ops::mH(L), permuted)));
}

Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  static constinit std::atomic<bool> told{false};
  warn_once(told,
            "lu_solve(): is deprecated in favour of linalg.lu_solve; lu_solve(B, LU, pivots) is "
            "linalg.lu_solve(LU, pivots, B)");
  return ops::linalg_lu_solve(LU_data, LU_pivots, self);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_lu_factor_ex){
    .schema =
        "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
        "(Tensor LU, Tensor pivots, Tensor info)",
    .doc =
        "LU factors of matrices (..., m, n) in one matrix, the rows that changed places, and for "
        "each 0 or the number of the first pivot that is zero.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_lu_factor>,
    .cpu = typed_kernel<lu_factor>,
    .derivatives = {vjp("A", lu_factor_gradient, saves("LU", "pivots"))},
    .not_differentiable = names("pivots", "info"),
    .batch = batch::leading,
};
OP(linalg_lu_factor){
    .schema = "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    .doc = "As linalg.lu_factor_ex; RuntimeError where a pivot is zero.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<linalg_lu_factor>,
};
OP(_lu_with_info){
    .schema =
        "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> "
        "(Tensor LU, Tensor pivots, Tensor info)",
    .doc = "As linalg.lu_factor_ex; what torch.lu calls.",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<lu_with_info>,
};
OP(lu_unpack){
    .schema =
        "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
        "bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    .doc =
        "P, L and U out of what linalg.lu_factor gives; tensors without elements for what is not "
        "unpacked.",
    .forms = function | out,
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_lu_unpack>,
    .cpu = typed_kernel<lu_unpack>,
    .derivatives = {vjp("LU_data", lu_unpack_gradient)},
    .not_differentiable = names("LU_pivots", "P"),
    .batch = batch::matrices,
};
OP(linalg_lu){
    .schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    .doc = "P, L and U with A = P L U of matrices (..., m, n), rows chosen by partial pivoting.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_lu>,
    .cpu = typed_kernel<linalg_lu>,
    .derivatives = {vjp("A", linalg_lu_gradient, saves("P", "L", "U"))},
    .not_differentiable = names("P"),
    .batch = batch::leading,
};
OP(linalg_lu_solve){
    .schema =
        "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, "
        "bool adjoint=False) -> Tensor",
    .doc =
        "X with A X = B, or X A = B, for matrices A whose LU factors are given, or whose adjoints' "
        "are; leading sizes broadcast.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_lu_solve>,
    .cpu = typed_kernel<cpu::lu_solve>,
    .derivatives = {vjp(names("LU", "B"), lu_solve_gradient, saves("LU", "pivots", "result"))},
    .not_differentiable = names("pivots"),
    .batch = batch::factored_systems,
};
OP(lu_solve){
    .schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    .doc = "X with A X = self for matrices A whose LU factors are given.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<lu_solve>,
};
