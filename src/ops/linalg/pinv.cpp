// What singular values tell: pseudo-inverses, ranks, condition numbers.
#include "ops/linalg/pinv.h"

#include <cmath>
#include <limits>

#include "dispatch/batch.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/minmax.h"
#include "ops/elementwise/where.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/inverse.h"
#include "ops/linalg/matrix_norm.h"
#include "ops/linalg/svd.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

// --- which singular values count

using MaybeNumber = std::optional<double>;

bool has_full_precision(const Tensor& t) {
  const DType d = t.dtype();
  return d == DType::Float32 || d == DType::Float64 || d == DType::Complex64 ||
         d == DType::Complex128;
}

// What rtol is unless it is given: the rounding errors of a matrix of this size.
double default_rtol(const Tensor& A) {
  const bool single = real_of(A.dtype()) == DType::Float32;
  const double epsilon =
      single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return epsilon * static_cast<double>(std::max(A.size(-2), A.size(-1)));
}

Tensor number(const Tensor& like, double value) {
  return ops::full(IntList{}, value, DType::Float64, std::nullopt, like.device());
}

struct Tolerance {
  Tensor atol, rtol;  // of each matrix of a batch
};

void check_real(const Tensor& t, const char* op, const char* argument) {
  check(!t.defined() || !is_complex(t.dtype()), op, "(): ", argument, " must be real; got ",
        t.defined() ? name(t.dtype()) : "");
}

// A positive atol alone stands for itself; else the default of rtol holds.
Tolerance tolerance(const Tensor& A, const Tensor& atol, const Tensor& rtol, const char* op) {
  check_real(atol, op, "atol");
  check_real(rtol, op, "rtol");
  const Tensor absolute = atol.defined() ? atol : number(A, 0);
  if (rtol.defined()) return {absolute, rtol};
  if (!atol.defined()) return {absolute, number(A, default_rtol(A))};
  return {absolute, ops::where(ops::gt(atol, 0), number(A, 0), number(A, default_rtol(A)))};
}

Tensor maybe_number(const Tensor& like, const MaybeNumber& value) {
  return value ? number(like, *value) : Tensor();
}

// Which of the magnitudes (..., k) are greater than atol and than rtol times the greatest.
Tensor that_count(const Tensor& magnitudes, const Tolerance& t) {
  const Tensor greatest = ops::amax(magnitudes, IntList{-1}, true);
  const Tensor relative = ops::mul(ops::unsqueeze(t.rtol, -1), greatest);
  return ops::gt(magnitudes, ops::maximum(ops::unsqueeze(t.atol, -1), relative));
}

// --- pseudo-inverses

void check_pinv(const Tensor& A) {
  check(A.dim() >= 2 && has_full_precision(A),
        "linalg.pinv(): expected at least 2 dimensions and float32, float64, complex64 or "
        "complex128; got ",
        str(A.sizes()), " and ", name(A.dtype()));
}

Tensor inverted(const Tensor& values, const Tensor& counting) {
  return ops::where(counting, ops::reciprocal(values), ops::zeros_like(values));
}

Tensor pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_pinv(self);
  const Tolerance t = tolerance(self, atol, rtol, "linalg.pinv");
  if (self.numel() == 0)
    return ops::new_empty(self, with_sizes(leading(self), {self.size(-1), self.size(-2)}));
  if (hermitian) {
    const auto [L, Q] = ops::_linalg_eigh(self);
    const Tensor inverse = inverted(L, that_count(ops::abs(L), t));
    return ops::matmul(ops::mul(Q, ops::unsqueeze(inverse, -2)), ops::mH(Q));
  }
  const auto [U, S, Vh] = ops::_linalg_svd(self);
  const Tensor inverse = inverted(S, that_count(S, t));
  return ops::matmul(ops::mul(ops::mH(Vh), ops::unsqueeze(inverse, -2)), ops::mH(U));
}
Tensor pinv_of_numbers(const Tensor& self, const MaybeNumber& atol, const MaybeNumber& rtol,
                       bool hermitian) {
  check_pinv(self);
  return ops::linalg_pinv(self, maybe_number(self, atol), maybe_number(self, rtol), hermitian);
}
Tensor pinv_rcond(const Tensor& self, double rcond, bool hermitian) {
  return pinv_of_numbers(self, 0.0, rcond, hermitian);
}
Tensor pinv_rcond_tensor(const Tensor& self, const Tensor& rcond, bool hermitian) {
  check_pinv(self);
  return ops::linalg_pinv(self, number(self, 0), rcond, hermitian);
}
Tensor pinverse(const Tensor& self, double rcond) { return pinv_rcond(self, rcond, false); }

// Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems
// whose variables separate (1973), for matrices of constant rank:
//   dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.
Tensor pinv_gradient(Backward& b) {
  const Tensor A = b["self"], P = b["result"], adjoint = ops::mH(P), grad = ops::mH(b.grad());
  // X with (I - A P) X, and X (I - P A).
  auto beside_left = [&](const Tensor& X) {
    return ops::sub(X, ops::matmul(A, ops::matmul(P, X)));
  };
  auto beside_right = [&](const Tensor& X) {
    return ops::sub(X, ops::matmul(ops::matmul(X, P), A));
  };
  const Tensor inner = ops::neg(ops::matmul(adjoint, ops::matmul(b.grad(), adjoint)));
  const Tensor left = beside_left(ops::matmul(grad, ops::matmul(P, adjoint)));
  const Tensor right = beside_right(ops::matmul(ops::matmul(adjoint, P), grad));
  return ops::sum_to_size(ops::add(inner, ops::add(left, right)), A.sizes());
}

// --- ranks

Tensor rank_of(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  constexpr const char* op = "linalg.matrix_rank";
  check_matrices(A, op, "A");
  check(has_full_precision(A), op, "(): expected float32, float64, complex64 or complex128; got ",
        name(A.dtype()));
  const Tolerance t = tolerance(A, atol, rtol, op);
  if (A.numel() == 0) return ops::zeros(leading(A), DType::Int64, std::nullopt, A.device());
  const Tensor values = ops::detach(A);
  const Tensor magnitudes =
      hermitian ? ops::abs(ops::linalg_eigvalsh(values)) : ops::linalg_svdvals(values);
  return ops::sum(that_count(magnitudes, t), IntList{-1});
}
Tensor rank_of_numbers(const Tensor& A, const MaybeNumber& atol, const MaybeNumber& rtol,
                       bool hermitian) {
  return rank_of(A, maybe_number(A, atol), maybe_number(A, rtol), hermitian);
}
Tensor rank_tol(const Tensor& A, double tol, bool hermitian) {
  return rank_of_numbers(A, tol, 0.0, hermitian);
}
Tensor rank_tol_tensor(const Tensor& A, const Tensor& tol, bool hermitian) {
  return rank_of(A, tol, number(A, 0), hermitian);
}

// --- condition numbers

constexpr const char* cond_name = "linalg.cond";

void check_cond_square(const Tensor& A) { check_square(A, cond_name); }

Tensor no_condition(const Tensor& A) { return ops::new_zeros(A, leading(A), real_of(A.dtype())); }

Tensor ratio_of_values(const Tensor& A, bool greatest_first) {
  const Tensor S = ops::linalg_svdvals(A);
  const Tensor first = ops::narrow(S, -1, 0, 1), last = ops::narrow(S, -1, S.size(-1) - 1, 1);
  return ops::squeeze(greatest_first ? ops::div(first, last) : ops::div(last, first), -1);
}

// The norm of A times that of its inverse, where norm(X) gives norms; infinite where there is none.
template <class F>
Tensor product_of_norms(const Tensor& A, F&& norm) {
  const auto [inverse, info] = ops::linalg_inv_ex(A);
  const Tensor product = ops::mul(norm(A), norm(inverse));
  const Tensor infinity = ops::full_like(product, std::numeric_limits<double>::infinity());
  const Tensor none = ops::logical_or(ops::gt(info, 0), ops::isnan(product));
  return ops::where(none, infinity, product);
}

Tensor cond(const Tensor& self, const std::optional<Scalar>& p) {
  check_matrices(self, cond_name, "A");
  const double order = p ? p->to<double>() : 2, size = std::fabs(order);
  check_kind(ErrorKind::Value, size == 1 || size == 2 || std::isinf(size), cond_name,
             "(): p must be 1, 2, inf or one of these negated; got ", order);
  if (self.numel() == 0) return no_condition(self);
  if (size != 2) check_cond_square(self);
  if (size == 2) return ratio_of_values(self, order > 0);
  return product_of_norms(
      self, [&](const Tensor& t) { return ops::linalg_matrix_norm(t, Scalar(order)); });
}

Tensor cond_named(const Tensor& self, std::string_view p) {
  check_matrices(self, cond_name, "A");
  check_kind(ErrorKind::Value, p == "fro" || p == "nuc", cond_name,
             "(): p must be 'fro' or 'nuc' where it is a word; got '", p, "'");
  check_cond_square(self);
  if (self.numel() == 0) return no_condition(self);
  if (p == "fro")
    return product_of_norms(self, [&](const Tensor& t) { return ops::linalg_matrix_norm(t, p); });
  const Tensor S = ops::linalg_svdvals(self);
  return ops::mul(ops::sum(S, IntList{-1}), ops::sum(ops::reciprocal(S), IntList{-1}));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_pinv_atol_rtol_tensor){
    .schema =
        "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, "
        "bool hermitian=False) -> Tensor",
    .doc =
        "Pseudo-inverses (..., n, m) of matrices (..., m, n). Singular values count if they are "
        "greater than atol and than rtol times the greatest one.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "atol_rtol_tensor_out",
    .composite = Composite::Explicit,
    .any = typed_kernel<pinv>,
    .derivatives = {vjp("self", pinv_gradient, saves("self", "result"))},
    .node = "LinalgPinvBackward0",
    .batch = batch::leading,
};
OP(linalg_pinv_atol_rtol_float){
    .schema =
        "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
        "bool hermitian=False) -> Tensor",
    .doc = "Pseudo-inverses, with one tolerance for all matrices.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "atol_rtol_float_out",
    .composite = Composite::Implicit,
    .any = typed_kernel<pinv_of_numbers>,
};
OP(linalg_pinv_rcond_tensor){
    .schema = "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    .doc = "Pseudo-inverses; rcond is rtol.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out_rcond_tensor",
    .composite = Composite::Implicit,
    .any = typed_kernel<pinv_rcond_tensor>,
};
OP(linalg_pinv){
    .schema = "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    .doc = "Pseudo-inverses; rcond is rtol.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out",
    .composite = Composite::Implicit,
    .any = typed_kernel<pinv_rcond>,
};
OP(pinverse){
    .schema = "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    .doc = "Pseudo-inverses; linalg.pinv with rtol=rcond.",
    .forms = function | method,
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<pinverse>,
};
OP(linalg_matrix_rank_atol_rtol_tensor){
    .schema =
        "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, "
        "Tensor? rtol=None, bool hermitian=False) -> Tensor",
    .doc =
        "Ranks of matrices (..., m, n): how many singular values are greater than atol and than "
        "rtol times the greatest one.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "atol_rtol_tensor_out",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<rank_of>,
};
OP(linalg_matrix_rank_atol_rtol_float){
    .schema =
        "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
        "bool hermitian=False) -> Tensor",
    .doc = "Ranks of matrices, with one tolerance for all.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "atol_rtol_float_out",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<rank_of_numbers>,
};
OP(linalg_matrix_rank_tol_tensor){
    .schema =
        "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    .doc = "Ranks of matrices; tol is atol.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out_tol_tensor",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<rank_tol_tensor>,
};
OP(linalg_matrix_rank){
    .schema = "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    .doc = "Ranks of matrices; tol is atol.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<rank_tol>,
};
OP(linalg_cond){
    .schema = "linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
    .doc =
        "Condition numbers of matrices: the norm of order p, by default 2, times that of the "
        "inverse.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out",
    .composite = Composite::Implicit,
    .flags = out_follows,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<cond>,
};
OP(linalg_cond_p_str){
    .schema = "linalg_cond.p_str(Tensor self, str p) -> Tensor",
    .doc = "Condition numbers by the Frobenius or the nuclear norm.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = out_follows,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<cond_named>,
};
