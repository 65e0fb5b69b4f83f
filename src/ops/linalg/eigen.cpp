// Eigenvalues and eigenvectors.
#include "ops/linalg/eigen.h"

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/eigen.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/differentiation.h"
#include "ops/linalg/inverse.h"
#include "ops/linalg/solve.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

// --- Hermitian matrices

bool is_upper(std::string_view UPLO, const char* op) {
  const bool known = UPLO == "L" || UPLO == "l" || UPLO == "U" || UPLO == "u";
  check(known, op, "(): UPLO must be 'L' or 'U'; got '", UPLO, "'");
  return UPLO == "U" || UPLO == "u";
}

void meta_eigh(Meta& m, const Tensor& A, std::string_view UPLO, bool compute_v) {
  constexpr const char* op = "linalg.eigh";
  check_square(A, op);
  is_upper(UPLO, op);
  check_solvable(A.dtype(), op);
  m.result(0, with_sizes(leading(A), {A.size(-1)}), real_of(A.dtype()));
  if (compute_v)
    column_result(m, 1, A.sizes(), A.dtype());
  else
    m.result(1, IntList{0}, A.dtype());
}

void eigh_kernel(const Tensor& A, std::string_view UPLO, bool compute_v, const Tensor& values,
                 const Tensor& vectors) {
  const Tensor status = empty_tensor(leading(A), DType::Int32);
  cpu::eigh(A, is_upper(UPLO, "linalg.eigh"), values, compute_v ? vectors : Tensor(), status);
  check_converged(status, "linalg.eigh", "eigenvalues");
}

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) {
  return ops::_linalg_eigh(self, UPLO, true);
}

// Their gradients need the eigenvectors, which are left out where nobody will ask for gradients.
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) {
  return std::get<0>(ops::_linalg_eigh(self, UPLO, may_be_differentiated(self)));
}

// 1 / (values[j] - values[i]), with 1 on the diagonal.
Tensor gaps(const Tensor& values) {
  const Tensor difference = ops::sub(ops::unsqueeze(values, -2), ops::unsqueeze(values, -1));
  return with_diagonal(difference, ops::ones_like(values));
}

// Giles, An extended collection of matrix derivative results for forward and reverse mode
// algorithmic differentiation (2008), section 3.1: A = V diag(L) V^H.
Tensor eigh_gradient(const Backward& b) {
  const Tensor L = b.result(0), V = b.result(1), gL = b.grad(0), gV = b.grad(1);
  if (!gL.defined() && !gV.defined()) return {};
  check(V.dim() >= 2, "linalg.eigh(): the derivative needs eigenvectors; got compute_v=False");
  const Tensor adjoint = ops::mH(V);
  if (!gV.defined()) return ops::matmul(ops::mul(V, ops::unsqueeze(gL, -2)), adjoint);
  const Tensor turned = ops::matmul(adjoint, gV);
  check_phase(turned, "linalg.eigh", "eigenvectors");
  const Tensor diagonal = gL.defined() ? gL : ops::zeros_like(L);
  const Tensor inner = with_diagonal(ops::div(turned, gaps(L)), diagonal);
  return ops::matmul(V, ops::matmul(inner, adjoint));
}
void set_eigh_gradient(Backward& b) { b.set("A", eigh_gradient(b)); }

// --- other square matrices

void check_eig(const Tensor& self, const char* op) {
  check_square(self, op);
  check(is_differentiable(self.dtype()), op,
        "(): expected a floating point or complex matrix; got ", name(self.dtype()));
  check_solvable(self.dtype(), op);
}

void meta_eig(Meta& m, const Tensor& self) {
  check_eig(self, "linalg.eig");
  const DType d = complex_of(self.dtype());
  m.result(0, with_sizes(leading(self), {self.size(-1)}), d);
  column_result(m, 1, self.sizes(), d);
}
void meta_eigvals(Meta& m, const Tensor& self) {
  check_eig(self, "linalg.eigvals");
  m.result(0, with_sizes(leading(self), {self.size(-1)}), complex_of(self.dtype()));
}

// PyTorch's error for an infinity or NaN is a RuntimeError here, and LinAlgError elsewhere.
void eig_of(const Tensor& A, const Tensor& values, const Tensor& vectors, const char* op) {
  const Tensor status = empty_tensor(leading(A), DType::Int32);
  cpu::eig(A, values, vectors, status);
  for (int64_t i = 0; i < status.numel(); ++i)
    check(status.data<int32_t>()[i] != cpu::not_finite, op, "(): expected finite elements; got ",
          "an infinity or NaN", where_of(status, i));
  check_converged(status, op, "eigenvalues");
}
void eig_kernel(const Tensor& A, const Tensor& values, const Tensor& vectors) {
  eig_of(A, values, vectors, "linalg.eig");
}
void eigvals_kernel(const Tensor& A, const Tensor& values) {
  eig_of(A, values, Tensor(), "linalg.eigvals");
}

Tensor linalg_eigvals(const Tensor& self) {
  return may_be_differentiated(self) ? std::get<0>(ops::linalg_eig(self))
                                     : ops::_linalg_eigvals(self);
}

// Boeddeker et al., On the computation of complex-valued gradients with application to
// statistically optimum beamforming (2017), section 4.7, for eigenvectors of norm 1: what would
// change a norm is taken out of their gradient.
Tensor eig_gradient(const Backward& b) {
  const Tensor L = b.result(0), V = b.result(1), gL = b.grad(0), gV = b.grad(1);
  if (!gL.defined() && !gV.defined()) return {};
  const Tensor adjoint = ops::mH(V);
  Tensor inner;
  if (!gV.defined()) {
    inner = ops::mul(ops::unsqueeze(gL, -1), adjoint);
  } else {
    const Tensor turned = ops::matmul(adjoint, gV);
    check_phase(turned, "linalg.eig", "eigenvectors");
    const Tensor along = ops::unsqueeze(ops::real(ops::diagonal(turned, 0, -2, -1)), -2);
    const Tensor across = ops::sub(turned, ops::matmul(adjoint, ops::mul(V, along)));
    const Tensor diagonal = gL.defined() ? gL : ops::zeros_like(L);
    inner = ops::matmul(with_diagonal(ops::div(across, gaps(ops::conj(L))), diagonal), adjoint);
  }
  const Tensor grad = ops::linalg_solve(adjoint, inner);
  return is_complex(b.dtype("self")) ? grad : ops::real(grad);
}
void set_eig_gradient(Backward& b) { b.set("self", eig_gradient(b)); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(_linalg_eigh){
    .schema =
        "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, "
        "Tensor eigenvectors)",
    .doc = "As linalg.eigh; without compute_v the eigenvectors are an empty tensor.",
    .forms = out,
    .out_name = "eigenvalues",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_eigh>,
    .cpu = typed_kernel<eigh_kernel>,
    .derivatives = {vjp(names("A"), set_eigh_gradient, saves("eigenvalues", "eigenvectors"))},
    .node = "LinalgEighBackward0",
    .batch = batch::leading,
};
OP(linalg_eigh){
    .schema = "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    .doc =
        "Eigenvalues (..., n), in ascending order, and eigenvectors, as columns, of Hermitian "
        "matrices (..., n, n), of which the lower or the upper triangle is read. LinAlgError where "
        "they are not found.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "eigvals",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_eigh>,
};
OP(linalg_eigvalsh){
    .schema = "linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
    .doc = "Eigenvalues (..., n), in ascending order, of Hermitian matrices (..., n, n).",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_eigvalsh>,
};
OP(linalg_eig){
    .schema = "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    .doc =
        "Eigenvalues (..., n) and eigenvectors of norm 1, as columns, of square matrices "
        "(..., n, n), both complex.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = runs_when_called,
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_eig>,
    .cpu = typed_kernel<eig_kernel>,
    .derivatives = {vjp(names("self"), set_eig_gradient, saves("eigenvalues", "eigenvectors"))},
    .batch = batch::leading,
};
OP(_linalg_eigvals){
    .schema = "_linalg_eigvals(Tensor self) -> Tensor",
    .doc = "Eigenvalues of square matrices, without what a derivative needs.",
    .forms = hidden,
    .flags = runs_when_called,
    .meta = typed_meta<meta_eigvals>,
    .cpu = typed_kernel<eigvals_kernel>,
    .batch = batch::leading,
    .hole = "derivatives: linalg.eigvals takes linalg.eig where they are wanted",
};
OP(linalg_eigvals){
    .schema = "linalg_eigvals(Tensor self) -> Tensor",
    .doc = "Eigenvalues (..., n), complex and in no particular order, of square matrices.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_eigvals>,
};
