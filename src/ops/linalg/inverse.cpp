// Inverses of matrices.
#include "ops/linalg/inverse.h"

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/inverse.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

void check_square(const Tensor& A) {
  check(A.dim() >= 2, "linalg.inv(): A must have at least 2 dimensions; got ", A.dim());
  check(A.size(-1) == A.size(-2), "linalg.inv(): A must be square; got ", A.size(-2), " by ",
        A.size(-1));
  const DType d = A.dtype();
  check_kind(ErrorKind::NotImplemented, is_differentiable(d),
             "linalg.inv(): A must be floating point or complex; got ", name(d));
  const bool full =
      d == DType::Float32 || d == DType::Float64 || d == DType::Complex64 || d == DType::Complex128;
  check_kind(ErrorKind::NotImplemented, full, "linalg.inv() is not implemented for ", name(d));
}

// Matrices of the result stand column by column, as LAPACK leaves them.
void meta_inverse(Meta& m, const Tensor& A, bool) {
  check_square(A);
  const size_t n = static_cast<size_t>(A.dim());
  IntVec strides = contiguous_strides(A.sizes());
  strides[n - 2] = 1;
  strides[n - 1] = std::max<int64_t>(A.size(-1), 1);
  m.result(0, A.sizes(), A.dtype(), strides);
  m.result(1, A.sizes().first(n - 2), DType::Int32);
}

// What codes of decompositions other than 0 mean: the error, and what is said before and after the
// code and the number of the matrix.
struct Failure {
  std::string_view op;  // or how its name begins
  ErrorKind kind;
  const char *before, *after;
};
constexpr Failure failures[] = {
    {"linalg.cholesky", ErrorKind::LinAlg, "the leading minor of order ",
     " is not positive: only positive definite matrices have a Cholesky factor"},
    {"linalg.lu", ErrorKind::Runtime, "pivot ",
     " is zero: to solve with these factors would divide by it"},
    {"linalg.ldl", ErrorKind::Runtime, "block ",
     " of D is singular: to solve with these factors would divide by it"},
    {"linalg.solve", ErrorKind::LinAlg, "pivot ",
     " is zero: a singular matrix leaves no or many solutions"},
    {"", ErrorKind::LinAlg, "pivot ", " is zero: a singular matrix has no inverse"},
};

void check_status(const Tensor& status, std::string_view op) {
  if (status.is_meta()) return;
  const Tensor codes = cpu::contiguous(status);
  const int32_t* code = codes.data<int32_t>();
  for (int64_t i = 0; i < codes.numel(); ++i) {
    if (code[i] == 0) continue;
    const std::string where = status.dim() == 0 ? std::string() : concat(" of matrix ", i);
    for (const Failure& f : failures)
      if (op.starts_with(f.op)) throw Error(f.kind, op, "(): ", f.before, code[i], where, f.after);
  }
}

void inverse_with_status(const Tensor& A, bool check_errors, const Tensor& inverse,
                         const Tensor& status) {
  cpu::invert(A, inverse, status);
  if (check_errors) check_status(status, "linalg.inv_ex");
}

Tensor linalg_inv(const Tensor& A) {
  const auto [inverse, status] = ops::linalg_inv_ex(A);
  ops::_linalg_check_errors(status, "linalg.inv", A.dim() == 2);
  return inverse;
}

void check_errors(const Tensor& info, std::string_view api_name, bool) {
  check_status(info, api_name);
}

Tensor inverse_gradient(Backward& b) {
  const Tensor inverse = b["inverse"];
  const Tensor adjoint =
      ops::transpose(is_complex(inverse.dtype()) ? ops::conj(inverse) : inverse, -2, -1);
  return ops::neg(ops::matmul(adjoint, ops::matmul(b.grad(), adjoint)));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_inv_ex){
    .schema =
        "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    .doc =
        "Inverses of square matrices (..., n, n), and for each 0 or the number of the first pivot "
        "that is zero.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "inverse",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_inverse>,
    .cpu = typed_kernel<inverse_with_status>,
    .derivatives = {vjp("A", inverse_gradient, saves("inverse"))},
    .not_differentiable = names("info"),
    .batch = batch::leading,
};
OP(_linalg_check_errors){
    .schema = "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    .doc = "LinAlgError in the name of api_name where info, from a decomposition, is not zero.",
    .any = typed_kernel<check_errors>,
    .not_differentiable = names("info"),
    .batch = [](Batch& b) { b.run(); },
};
OP(linalg_inv){
    .schema = "linalg_inv(Tensor A) -> Tensor",
    .doc = "Inverses of square matrices (..., n, n); LinAlgError where one is singular.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_inv>,
};
OP(inverse){
    .schema = "inverse(Tensor self) -> Tensor",
    .doc = "The same as linalg.inv.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<linalg_inv>,
};
