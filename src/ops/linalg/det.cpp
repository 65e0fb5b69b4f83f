// Determinants.
#include "ops/linalg/det.h"

#include <limits>

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/determinant.h"
#include "kernels/cpu/linalg/lu.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/where.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/lu.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/repeat.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

// The factors, which follow what is made of them.
void meta_factors(Meta& m, int first, const Tensor& A) {
  m.result(first, A.sizes(), A.dtype(), column_strides(A.sizes()));
  m.result(first + 1, A.sizes().first(A.sizes().size() - 1), DType::Int32);
}

void meta_det(Meta& m, const Tensor& A) {
  check_square(A, "linalg.det");
  check_solvable(A.dtype(), "linalg.det");
  m.result(0, leading(A), A.dtype());
  meta_factors(m, 1, A);
}

void meta_slogdet(Meta& m, const Tensor& A) {
  check_square(A, "linalg.slogdet");
  check_solvable(A.dtype(), "linalg.slogdet");
  m.result(0, leading(A), A.dtype());
  m.result(1, leading(A), real_of(A.dtype()));
  meta_factors(m, 2, A);
}

Tensor codes_of(const Tensor& A) { return empty_tensor(leading(A), DType::Int32); }

void det_with_factors(const Tensor& A, const Tensor& result, const Tensor& LU,
                      const Tensor& pivots) {
  cpu::lu_factor(A, LU, pivots, codes_of(A));
  cpu::determinant(LU, pivots, result);
}

void slogdet_with_factors(const Tensor& A, const Tensor& sign, const Tensor& logarithm,
                          const Tensor& LU, const Tensor& pivots) {
  cpu::lu_factor(A, LU, pivots, codes_of(A));
  cpu::log_determinant(LU, pivots, sign, logarithm);
}

// The matrix of factors, or its adjoint's inverse, scaled: A^-H times a number for each matrix.
Tensor scaled_inverse_adjoint(const Tensor& LU, const Tensor& pivots, const Tensor& factor) {
  const Tensor numbers = ops::expand(ops::unsqueeze(factor, -1), pivots.sizes());
  return ops::linalg_lu_solve(LU, pivots, ops::diag_embed(numbers, 0, -2, -1), true, true);
}

// LU factors for a gradient. Those kept have no derivative: gradients of gradients need new ones.
std::tuple<Tensor, Tensor> factors(Backward& b) {
  if (!thread_state.grad_enabled) return {b["LU"], b["pivots"]};
  const auto [LU, pivots, info] = ops::linalg_lu_factor_ex(b["A"]);
  return {LU, pivots};
}

// -1 or 1 for each matrix, as the rows changed places an odd number of times or not.
Tensor permutation_sign(const Tensor& pivots, DType dtype) {
  const Tensor order = ops::arange(1, pivots.size(-1) + 1, DType::Int32);
  const Tensor changes = ops::sum(ops::ne(pivots, order), IntVec{-1});
  return ops::to(ops::add(ops::mul(ops::remainder(changes, 2), -2), 1), dtype);
}

// det A^-H is the matrix of cofactors, which singular matrices have too: zeros of the diagonal of U
// give way to numbers so small that the product with the determinant is not changed by them.
Tensor det_gradient(Backward& b) {
  auto [LU, pivots] = factors(b);
  const double epsilon = real_of(LU.dtype()) == DType::Float32 ? 0x1p-23 : 0x1p-52;
  const Tensor zeros = ops::to(ops::eq(ops::diagonal(LU, 0, -2, -1), 0), LU.dtype());
  LU = ops::add(LU, ops::diag_embed(ops::mul(zeros, epsilon), 0, -2, -1));
  const Tensor det =
      ops::mul(ops::prod(ops::diagonal(LU, 0, -2, -1), -1), permutation_sign(pivots, LU.dtype()));
  return scaled_inverse_adjoint(LU, pivots, ops::mul(b.grad(), ops::conj(det)));
}

// Of t = tr(A^-1 dA) the logarithm changes by Re t, and the sign by i Im t of itself.
Tensor slogdet_gradient(Backward& b) {
  const Tensor sign = b["sign"];
  Tensor factor = b.grad(1);
  if (is_complex(sign.dtype()) && b.grad(0).defined()) {
    const Tensor turn = ops::imag(ops::mul(b.grad(0), ops::conj(sign)));
    factor = ops::complex(factor.defined() ? factor : ops::zeros_like(turn), turn);
  }
  if (!factor.defined()) return {};
  const auto [LU, pivots] = factors(b);
  return scaled_inverse_adjoint(LU, pivots, ops::to(factor, sign.dtype()));
}

Tensor linalg_det(const Tensor& A) { return std::get<0>(ops::_linalg_det(A)); }

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
  const auto [sign, logarithm, LU, pivots] = ops::_linalg_slogdet(A);
  return {sign, logarithm};
}

Tensor logdet(const Tensor& self) {
  check_square(self, "logdet");
  const auto [sign, logarithm] = linalg_slogdet(self);
  if (is_complex(self.dtype())) return ops::add(ops::log(sign), logarithm);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return ops::where(ops::eq(sign, -1), Scalar(nan), logarithm);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_linalg_det){
    .schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    .doc = "Determinants of square matrices (..., n, n), and their LU factors.",
    .forms = function | out,
    .out_name = "result",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_det>,
    .cpu = typed_kernel<det_with_factors>,
    .derivatives = {vjp("A", det_gradient, saves("A", "LU", "pivots"))},
    .not_differentiable = names("LU", "pivots"),
    .batch = batch::leading,
};
OP(linalg_det){
    .schema = "linalg_det(Tensor A) -> Tensor",
    .doc = "Determinants of square matrices (..., n, n).",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<linalg_det>,
};
OP(det){
    .schema = "det(Tensor self) -> Tensor",
    .doc = "The same as linalg.det.",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<linalg_det>,
};
OP(_linalg_slogdet){
    .schema =
        "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    .doc = "As linalg.slogdet, with the LU factors.",
    .forms = function | out,
    .out_name = "sign",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_slogdet>,
    .cpu = typed_kernel<slogdet_with_factors>,
    .derivatives = {vjp("A", slogdet_gradient, saves("A", "LU", "pivots", "sign"))},
    .not_differentiable = names("LU", "pivots"),
    .batch = batch::leading,
};
OP(linalg_slogdet){
    .schema = "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    .doc =
        "Signs (complex: phases) of determinants of square matrices, and logarithms of their "
        "absolute values.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<linalg_slogdet>,
};
OP(slogdet){
    .schema = "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    .doc = "The same as linalg.slogdet.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<linalg_slogdet>,
};
OP(logdet){
    .schema = "logdet(Tensor self) -> Tensor",
    .doc = "Logarithms of determinants of square matrices; NaN where one is negative.",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<logdet>,
};
