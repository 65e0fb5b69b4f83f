// Singular values and vectors, and the polar decomposition.
#include "ops/linalg/svd.h"

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/singular.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/differentiation.h"
#include "ops/linalg/inverse.h"
#include "ops/linalg/matrix_functions.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;
using Driver = std::optional<std::string_view>;

int64_t least(const Tensor& A) { return std::min(A.size(-2), A.size(-1)); }

// --- singular values

void meta_svd(Meta& m, const Tensor& A, bool full_matrices, bool compute_uv, const Driver& driver) {
  constexpr const char* op = "linalg.svd";
  check_matrices(A, op, "A");
  check_floating(A.dtype(), op);
  check_solvable(A.dtype(), op);
  check(!driver || A.device().type == DeviceType::CUDA, op,
        "(): driver= is for matrices on CUDA; got '", driver.value_or(""), "'");
  const int64_t rows = A.size(-2), columns = A.size(-1), k = least(A);
  if (compute_uv) {
    column_result(m, 0, with_sizes(leading(A), {rows, full_matrices ? rows : k}), A.dtype());
    column_result(m, 2, with_sizes(leading(A), {full_matrices ? columns : k, columns}), A.dtype());
  } else {
    m.result(0, IntList{0}, A.dtype());
    m.result(2, IntList{0}, A.dtype());
  }
  m.result(1, with_sizes(leading(A), {k}), real_of(A.dtype()));
}

void svd_kernel(const Tensor& A, bool, bool compute_uv, const Driver&, const Tensor& U,
                const Tensor& S, const Tensor& Vh) {
  const Tensor status = empty_tensor(leading(A), DType::Int32);
  cpu::svd(A, compute_uv ? U : Tensor(), S, compute_uv ? Vh : Tensor(), status);
  check_converged(status, "linalg.svd", "singular values");
}

using Svd = std::tuple<Tensor, Tensor, Tensor>;

Svd linalg_svd(const Tensor& A, bool full_matrices, const Driver& driver) {
  return ops::_linalg_svd(A, full_matrices, true, driver);
}

// Their gradients need the vectors, which are left out where nobody will ask for gradients.
Tensor linalg_svdvals(const Tensor& A, const Driver& driver) {
  return std::get<1>(ops::_linalg_svd(A, false, may_be_differentiated(A), driver));
}

Svd svd(const Tensor& self, bool some, bool compute_uv) {
  check(self.dim() >= 2, "svd(): expected a tensor of at least 2 dimensions; got ", self.dim());
  if (compute_uv) {
    const auto [U, S, Vh] = ops::_linalg_svd(self, !some, true);
    return {U, S, ops::mH(Vh)};
  }
  const Tensor S = ops::linalg_svdvals(self);
  const int64_t rows = self.size(-2), columns = self.size(-1);
  return {ops::new_zeros(self, with_sizes(leading(self), {rows, rows})), S,
          ops::mT(ops::new_zeros(self, with_sizes(leading(self), {columns, columns})))};
}

// --- their gradient: Giles, An extended collection of matrix derivative results for forward and
// reverse mode algorithmic differentiation (2008), section 3.2; Wan and Zhang, Automatic
// differentiation for complex valued SVD (2019)

Tensor first_columns(const Tensor& t, int64_t k) {
  return !t.defined() || t.size(-1) == k ? t : ops::narrow(t, -1, 0, k);
}
Tensor first_rows(const Tensor& t, int64_t k) {
  return !t.defined() || t.size(-2) == k ? t : ops::narrow(t, -2, 0, k);
}
Tensor plus(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : ops::add(a, b);
}
Tensor less_adjoint(const Tensor& t) { return ops::sub(t, ops::mH(t)); }

// What is left of t when what lies in the span of the orthonormal columns of `basis` is taken out.
Tensor outside_of(const Tensor& basis, const Tensor& t) {
  return ops::sub(t, ops::matmul(basis, ops::matmul(ops::mH(basis), t)));
}

// The matrices U, diag(S), Vh and their gradients, of which some are undefined.
struct Factors {
  Tensor U, S, Vh, gU, gS, gVh;

  // Differences of squares, S[j]^2 - S[i]^2, with 1 on the diagonal, as products: close values keep
  // their digits.
  Tensor gaps() const {
    const Tensor row = ops::unsqueeze(S, -2), column = ops::unsqueeze(S, -1);
    const Tensor product = ops::mul(ops::sub(row, column), ops::add(row, column));
    return with_diagonal(product, ops::ones_like(S));
  }
  // Of A in the bases of U and V.
  Tensor inner() const {
    const Tensor row = ops::unsqueeze(S, -2), column = ops::unsqueeze(S, -1);
    const Tensor left = gU.defined() ? ops::matmul(ops::mH(U), gU) : Tensor(),
                 right = gVh.defined() ? ops::matmul(Vh, ops::mH(gVh)) : Tensor();
    check_phase(plus(left, right), "linalg.svd", "singular vectors");
    const Tensor between = gaps();
    Tensor sum;
    if (left.defined()) sum = ops::mul(ops::div(less_adjoint(left), between), row);
    if (right.defined()) sum = plus(sum, ops::mul(ops::div(less_adjoint(right), between), column));
    return with_diagonal(sum, diagonal(left));
  }
  // The gradient of the values, and for complex vectors that of their common phase.
  Tensor diagonal(const Tensor& left) const {
    const Tensor values = gS.defined() ? gS : ops::zeros_like(S);
    if (!is_complex(U.dtype()) || !left.defined()) return values;
    const Tensor phase = ops::div(ops::imag(ops::diagonal(left, 0, -2, -1)), S);
    return ops::complex(values, phase);
  }

  Tensor gradient() const {
    if (!gU.defined() && !gVh.defined())
      return ops::matmul(ops::mul(U, ops::unsqueeze(gS, -2)), Vh);
    Tensor left = ops::matmul(U, inner());
    if (gU.defined() && U.size(-2) > S.size(-1))
      left = ops::add(left, outside_of(U, ops::div(gU, ops::unsqueeze(S, -2))));
    const Tensor grad = ops::matmul(left, Vh);
    if (!gVh.defined() || Vh.size(-1) == S.size(-1)) return grad;
    const Tensor V = ops::mH(Vh);
    const Tensor right = outside_of(V, ops::div(ops::mH(gVh), ops::unsqueeze(S, -2)));
    return ops::add(grad, ops::matmul(U, ops::mH(right)));
  }
};

Tensor svd_gradient(const Backward& b) {
  if (!b.grad(0).defined() && !b.grad(1).defined() && !b.grad(2).defined()) return {};
  const Tensor U = b.result(0), S = b.result(1), Vh = b.result(2);
  check(U.dim() >= 2, "linalg.svd(): the derivative needs vectors; got compute_uv=False");
  // The further columns of whole bases are arbitrary: they have no derivative.
  const int64_t k = S.size(-1);
  const Factors f{first_columns(U, k),         S,         first_rows(Vh, k),
                  first_columns(b.grad(0), k), b.grad(1), first_rows(b.grad(2), k)};
  return f.gradient();
}
void set_svd_gradient(Backward& b) { b.set("A", svd_gradient(b)); }

// --- polar decomposition

void check_polar(const Tensor& A) {
  constexpr const char* op = "linalg.polar";
  check_matrices(A, op, "A");
  check_floating(A.dtype(), op);
  check(A.size(-2) >= A.size(-1), op, "(): A must have at least as many rows as columns; got ",
        A.size(-2), " by ", A.size(-1));
}

std::tuple<Tensor, Tensor> linalg_polar(const Tensor& A) {
  check_polar(A);
  const auto [W, S, Vh] = ops::_linalg_svd(A, false, true);
  const Tensor scaled = ops::mul(ops::mH(Vh), ops::unsqueeze(S, -2));
  return {ops::matmul(W, Vh), ops::matmul(scaled, Vh)};
}

// From A = U H: with W = U^H dU, which is skew, W H + H W = U^H dA - dA^H U.
Tensor polar_gradient(const Backward& b) {
  const Tensor U = b.result(0), H = b.result(1), gU = b.grad(0), gH = b.grad(1);
  if (!gU.defined() && !gH.defined()) return {};
  Tensor turn;
  if (gU.defined()) turn = ops::matmul(ops::mH(U), gU);
  if (gH.defined()) turn = plus(turn, ops::neg(ops::matmul(gH, H)));
  const Tensor inner = plus(gH, ops::_linalg_lyapunov(H, less_adjoint(turn)));
  const Tensor grad = ops::matmul(U, inner);
  if (!gU.defined() || U.size(-2) == U.size(-1)) return grad;
  const Tensor inverse = std::get<0>(ops::linalg_inv_ex(H));
  return ops::add(grad, ops::matmul(outside_of(U, gU), inverse));
}
void set_polar_gradient(Backward& b) { b.set("A", polar_gradient(b)); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(_linalg_svd){
    .schema =
        "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, "
        "str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    .doc = "As linalg.svd; without compute_uv U and Vh are empty tensors.",
    .forms = out,
    .out_name = "U",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_svd>,
    .cpu = typed_kernel<svd_kernel>,
    .derivatives = {vjp(names("A"), set_svd_gradient, saves("U", "S", "Vh"))},
    .node = "LinalgSvdBackward0",
    .batch = batch::leading,
};
OP(linalg_svd){
    .schema =
        "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, "
        "Tensor S, Tensor Vh)",
    .doc =
        "Singular values S (..., k), in descending order, and singular vectors U and Vh of "
        "matrices A (..., m, n): A = U diag(S) Vh. LinAlgError where they are not found.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "U",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_svd>,
};
OP(linalg_svdvals){
    .schema = "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    .doc = "Singular values (..., min(m, n)), in descending order, of matrices (..., m, n).",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_svdvals>,
};
OP(svd){
    .schema =
        "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    .doc =
        "As linalg.svd, with V in place of Vh, and of U and V by default the first columns alone.",
    .forms = function | method | out,
    .out_name = "U",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<svd>,
};
OP(linalg_polar){
    .schema = "linalg_polar(Tensor A) -> (Tensor U, Tensor H)",
    .doc =
        "A = U H for matrices A (..., m, n) with m >= n: U has orthonormal columns, H is Hermitian "
        "and positive semidefinite.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Explicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_polar>,
    .derivatives = {vjp(names("A"), set_polar_gradient, saves("U", "H"))},
    .batch = batch::leading,
};
