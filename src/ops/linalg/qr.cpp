// QR factors, and the reflectors that they are kept as.
#include "ops/linalg/qr.h"

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/qr.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/batch.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/reflectors.h"
#include "ops/linalg/triangular.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/cat.h"
#include "ops/shape/repeat.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;

void column_result(Meta& m, int i, IntSpan batch, int64_t rows, int64_t cols, DType dtype) {
  const IntVec sizes = with_sizes(batch, {rows, cols});
  m.result(i, sizes, dtype, column_strides(sizes));
}

// --- QR

void meta_qr(Meta& m, const Tensor& A, std::string_view mode) {
  check_matrices(A, "linalg.qr", "A");
  check_solvable(A.dtype(), "linalg.qr");
  check(mode == "reduced" || mode == "complete" || mode == "r",
        "linalg.qr(): expected mode reduced, complete or r; got ", mode);
  const int64_t rows = A.size(-2), cols = A.size(-1);
  const int64_t inner = mode == "complete" ? rows : std::min(rows, cols);
  if (mode == "r")
    m.result(0, IntVec{0}, A.dtype());
  else
    column_result(m, 0, leading(A), rows, inner, A.dtype());
  column_result(m, 1, leading(A), inner, cols, A.dtype());
}

void linalg_qr(const Tensor& A, std::string_view mode, const Tensor& Q, const Tensor& R) {
  cpu::qr(A, mode == "r" ? Tensor() : Q, R);
}

// Walter, Lehmann, Structured higher-order algorithmic differentiation in the forward and reverse
// mode with application in optimum experimental design (2012), for square R: with the upper
// triangle T of gR R^H - Q^H gQ, (gQ + Q (T + T^H with the real diagonal once)) R^-H.
Tensor square_qr_gradient(const Tensor& Q, const Tensor& R, const Tensor& gQ, const Tensor& gR) {
  Tensor inner;
  if (gR.defined()) inner = ops::matmul(gR, ops::mH(R));
  if (gQ.defined()) {
    const Tensor turned = ops::matmul(ops::mH(Q), gQ);
    inner = inner.defined() ? ops::sub(inner, turned) : ops::neg(turned);
  }
  const Tensor above = ops::triu(inner, 1);
  const Tensor diagonal = ops::real(ops::diagonal(inner, 0, -2, -1));
  const Tensor symmetric =
      ops::add(ops::add(above, ops::mH(above)), ops::diag_embed(diagonal, 0, -2, -1));
  Tensor sum = ops::matmul(Q, symmetric);
  if (gQ.defined()) sum = ops::add(sum, gQ);
  return ops::linalg_solve_triangular(ops::mH(R), sum, false, false);
}

// Of a matrix with more columns than rows, R2 = Q^H A2 beside the square.
Tensor wide_qr_gradient(const Tensor& Q, const Tensor& R, Tensor gQ, const Tensor& gR) {
  const int64_t k = R.size(-2), rest = R.size(-1) - k;
  const Tensor R1 = ops::narrow(R, -1, 0, k), R2 = ops::narrow(R, -1, k, rest);
  if (!gR.defined()) {
    const Tensor grad = square_qr_gradient(Q, R1, gQ, gR);
    return ops::cat(std::vector<Tensor>{grad, ops::zeros_like(R2)}, -1);
  }
  const Tensor gR2 = ops::narrow(gR, -1, k, rest), A2_grad = ops::matmul(Q, gR2);
  const Tensor more = ops::matmul(Q, ops::matmul(R2, ops::mH(gR2)));
  gQ = gQ.defined() ? ops::add(gQ, more) : more;
  const Tensor grad = square_qr_gradient(Q, R1, gQ, ops::narrow(gR, -1, 0, k));
  return ops::cat(std::vector<Tensor>{grad, A2_grad}, -1);
}

Tensor qr_gradient(Backward& b) {
  const std::string_view mode = b.text("mode");
  check(mode != "r",
        "linalg.qr(): the gradient needs Q, which mode r does not compute: expected mode reduced; "
        "got r");
  const Tensor Q = b["Q"], R = b["R"];
  const int64_t rows = Q.size(-2), cols = R.size(-1);
  check(mode != "complete" || rows <= cols,
        "linalg.qr(): expected mode reduced of a matrix with more rows than columns, whose other "
        "columns of Q are not determined; got complete");
  const Tensor gQ = b.grad(0), gR = b.grad(1);
  if (!gQ.defined() && !gR.defined()) return {};
  return rows < cols ? wide_qr_gradient(Q, R, gQ, gR) : square_qr_gradient(Q, R, gQ, gR);
}

// --- reflectors

void meta_geqrf(Meta& m, const Tensor& self) {
  check_matrices(self, "geqrf", "input");
  check_solvable(self.dtype(), "geqrf");
  const int64_t rows = self.size(-2), cols = self.size(-1);
  column_result(m, 0, leading(self), rows, cols, self.dtype());
  m.result(1, with_sizes(leading(self), {std::min(rows, cols)}), self.dtype());
}

Tensor geqrf_gradient(Backward&) {
  throw Error(ErrorKind::NotImplemented, "the derivative for 'geqrf' is not implemented.");
}

// The reflectors' vectors and factors: what both operators on them check.
void check_reflectors(const Tensor& input, const Tensor& tau, const char* op) {
  check_matrices(input, op, "input");
  check_solvable(input.dtype(), op);
  check(input.size(-2) >= input.size(-1), op,
        "(): expected vectors of at least as many elements as there are; got ", str(input.sizes()));
  check(tau.dtype() == input.dtype(), op, "(): input and tau must have one dtype; got ",
        name(input.dtype()), " and ", name(tau.dtype()));
  check(tau.dim() == input.dim() - 1 &&
            std::ranges::equal(leading(input), tau.sizes().first(tau.sizes().size() - 1)),
        op, "(): expected tau with one dimension less than input and the same batch; got ",
        str(tau.sizes()), " and ", str(input.sizes()));
}

void meta_householder_product(Meta& m, const Tensor& input, const Tensor& tau) {
  constexpr const char* op = "linalg.householder_product";
  check_reflectors(input, tau, op);
  check(input.size(-1) >= tau.size(-1), op, "(): expected at most a factor for each column; got ",
        tau.size(-1), " of ", input.size(-1));
  column_result(m, 0, leading(input), input.size(-2), input.size(-1), input.dtype());
}

void householder_product_gradient(Backward& b) {
  const Tensor input = b["input"], tau = b["tau"];
  if (input.numel() == 0 || tau.numel() == 0) return;
  const Tensor start = ops::expand(
      ops::eye(input.size(-2), input.size(-1), input.dtype(), std::nullopt, input.device()),
      input.sizes());
  const ReflectorGradients g = reflector_gradients(input, tau, start, b.grad(), false);
  b.set("input", g.vectors);
  b.set("tau", g.factors);
}

Tensor orgqr(const Tensor& self, const Tensor& input2) {
  return ops::linalg_householder_product(self, input2);
}

void meta_ormqr(Meta& m, const Tensor& self, const Tensor& tau, const Tensor& C, bool left, bool) {
  constexpr const char* op = "ormqr";
  check_reflectors(self, tau, op);
  check_matrices(C, op, "other");
  check_same_dtype(self, C, op);
  const int64_t rows = C.size(left ? -2 : -1);
  check(std::ranges::equal(leading(self), leading(C)), op,
        "(): expected other with the batch of input; got ", str(C.sizes()), " and ",
        str(self.sizes()));
  check(rows == self.size(-2), op, "(): expected other with the ", self.size(-2),
        " rows of input, or so many columns on its other side; got ", rows);
  check(tau.size(-1) == std::min(rows, self.size(-1)), op,
        "(): expected a factor for each vector; got ", tau.size(-1), " of ", self.size(-1));
  column_result(m, 0, leading(C), C.size(-2), C.size(-1), C.dtype());
}

void ormqr(const Tensor& self, const Tensor& tau, const Tensor& C, bool left, bool transpose,
           const Tensor& product) {
  cpu::multiply_reflectors(self, tau, C, left, transpose, product);
}

// C Q is the adjoint of Q^H C^H.
void ormqr_gradient(Backward& b) {
  const bool left = b.flag("left"), transpose = b.flag("transpose");
  const Tensor self = b["self"], tau = b["input2"];
  if (b.needs("input3")) b.set("input3", ops::ormqr(self, tau, b.grad(), left, !transpose));
  if (!b.needs("self") && !b.needs("input2")) return;
  const Tensor C = b["input3"];
  const ReflectorGradients g =
      left ? reflector_gradients(self, tau, C, b.grad(), transpose)
           : reflector_gradients(self, tau, ops::mH(C), ops::mH(b.grad()), !transpose);
  b.set("self", g.vectors);
  b.set("input2", g.factors);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_qr){
    .schema = "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
    .doc =
        "Q with orthonormal columns and upper triangular R with A = Q R. mode reduced: as many "
        "columns of Q as A's lesser size; complete: a square Q; r: R alone.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_qr>,
    .cpu = typed_kernel<linalg_qr>,
    .derivatives = {vjp("A", qr_gradient, saves("Q", "R"))},
    .batch = batch::leading,
};
OP(geqrf){
    .schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    .doc =
        "QR factors as LAPACK keeps them: R with the vectors of reflectors below it, and their "
        "factors.",
    .forms = function | method | out,
    .out_name = "a",
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_geqrf>,
    .cpu = typed_kernel<cpu::geqrf>,
    .derivatives = {vjp("self", geqrf_gradient)},
    .batch = batch::leading,
};
OP(linalg_householder_product){
    .schema = "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    .doc =
        "The first n columns of the product of reflectors I - tau v v^H whose vectors stand below "
        "the diagonal of input (..., m, n).",
    .forms = function | out,
    .python_module = "linalg",
    .flags = runs_when_called,
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_householder_product>,
    .cpu = typed_kernel<cpu::householder_product>,
    .derivatives = {vjp(names("input", "tau"), householder_product_gradient,
                        saves("input", "tau"))},
    .batch = batch::matrices,
};
OP(orgqr){
    .schema = "orgqr(Tensor self, Tensor input2) -> Tensor",
    .doc = "The same as linalg.householder_product.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<orgqr>,
};
OP(ormqr){
    .schema =
        "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) "
        "-> Tensor",
    .doc =
        "Q input3, or input3 Q, with the product Q of all reflectors that geqrf gives, or with its "
        "adjoint.",
    .forms = function | method | out,
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_ormqr>,
    .cpu = typed_kernel<ormqr>,
    .derivatives = {vjp(names("self", "input2", "input3"), ormqr_gradient,
                        saves("self", "input2", "input3"))},
    .batch = batch::matrices,
};
