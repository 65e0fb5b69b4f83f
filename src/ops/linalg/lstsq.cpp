// Least squares.
#include "ops/linalg/lstsq.h"

#include <limits>

#include "dispatch/batch.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/least_squares.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/batch.h"
#include "ops/linalg/checks.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;
using cpu::LeastSquares;

constexpr const char* op_name = "linalg.lstsq";

struct DriverName {
  std::string_view name;
  LeastSquares driver;
};
constexpr DriverName drivers[] = {{"gels", LeastSquares::Gels},
                                  {"gelsy", LeastSquares::Gelsy},
                                  {"gelsd", LeastSquares::Gelsd},
                                  {"gelss", LeastSquares::Gelss}};

LeastSquares driver_of(const std::optional<std::string_view>& name) {
  if (!name) return LeastSquares::Gelsy;
  for (const DriverName& d : drivers)
    if (d.name == *name) return d.driver;
  check(false, op_name, "(): expected driver gels, gelsy, gelsd or gelss; got ", *name);
  return {};
}

void check_problem(const Tensor& A, const Tensor& B) {
  check_matrices(A, op_name, "input");
  check(B.dim() >= 1, op_name, "(): other must have at least 1 dimension; got 0");
  check(A.dim() == B.dim() || A.dim() == B.dim() + 1, op_name,
        "(): expected other with as many dimensions as input, or one less; got ", B.dim(), " and ",
        A.dim());
  check_same_dtype(A, B, op_name);
  const DType d = real_of(A.dtype());
  check(d == DType::Float32 || d == DType::Float64, op_name,
        "(): expected float32, float64, complex64 or complex128; got ", name(A.dtype()));
  const int64_t rows = B.size(A.dim() == B.dim() ? -2 : -1);
  check(A.size(-2) == rows, op_name, "(): expected other with the ", A.size(-2),
        " rows of input; got ", rows);
}

// A batch of matrices column by column with A, broadcast, in the first rows, and room below.
Tensor with_room(const Tensor& A, IntSpan batch, int64_t rows) {
  const Tensor made = cpu::empty_columns(with_sizes(batch, {rows, A.size(-1)}), A.dtype());
  cpu::fill(made, 0);
  cpu::copy(ops::narrow(made, -2, 0, A.size(-2)), A);
  return made;
}

// The squares of the lengths of B's columns below row n.
Tensor squared_lengths(const Tensor& B, int64_t n) {
  const Tensor rest = ops::narrow(B, -2, n, B.size(-2) - n), size = ops::abs(rest);
  return ops::sum(ops::mul(size, size), IntVec{-2});
}

bool all_of_rank(const Tensor& rank, int64_t n) {
  const int64_t* r = rank.data<int64_t>();
  return std::all_of(r, r + rank.numel(), [&](int64_t x) { return x == n; });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(
    const Tensor& self, const Tensor& b, const std::optional<double>& rcond,
    const std::optional<std::string_view>& driver) {
  const LeastSquares method = driver_of(driver);
  check_problem(self, b);
  const bool vectors = self.dim() == b.dim() + 1;
  const Tensor right = vectors ? ops::unsqueeze(b, -1) : b;
  const IntVec batch = broadcast_sizes(leading(self), leading(right));
  const int64_t m = self.size(-2), n = self.size(-1);
  const Tensor A = with_room(self, batch, m), B = with_room(right, batch, std::max(m, n));
  const DType real = real_of(self.dtype());
  const double epsilon = real == DType::Float32 ? 0x1p-23 : 0x1p-52;
  const bool by_values = method == LeastSquares::Gelsd || method == LeastSquares::Gelss;
  Tensor rank = empty_tensor(IntVec{0}, DType::Int64), values = empty_tensor(IntVec{0}, real),
         residuals = empty_tensor(IntVec{0}, real);
  if (method != LeastSquares::Gels) {
    rank = empty_tensor(batch, DType::Int64);
    cpu::fill(rank, 0);
  }
  if (by_values) values = empty_tensor(with_sizes(batch, {std::min(m, n)}), real);
  cpu::least_squares(method, A, B, rcond.value_or(epsilon * static_cast<double>(std::max(m, n))),
                     method == LeastSquares::Gels ? Tensor() : rank, by_values ? values : Tensor());
  const bool full_rank = method == LeastSquares::Gels || (by_values && all_of_rank(rank, n));
  if (m > n && full_rank) residuals = squared_lengths(B, n);
  const Tensor solution = ops::narrow(B, -2, 0, n);
  return {vectors ? ops::squeeze(solution, -1) : solution, residuals, rank, values};
}

// The pseudo-inverse, as what solves for the columns of the identity.
Tensor pseudo_inverse(const Tensor& A) {
  const Tensor one = ops::eye(A.size(-2), A.dtype(), std::nullopt, A.device());
  const IntVec sizes = with_sizes(leading(A), {A.size(-2), A.size(-2)});
  return std::get<0>(ops::linalg_lstsq(A, ops::expand(one, sizes)));
}

// Golub, Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
// variables separate (1973).
Tensor pseudo_inverse_gradient(const Tensor& A, const Tensor& P, const Tensor& grad) {
  const Tensor PH = ops::mH(P), GH = ops::mH(grad);
  const Tensor first = ops::matmul(PH, ops::matmul(grad, PH));
  const Tensor left = ops::matmul(ops::matmul(GH, P), PH);
  const Tensor right = ops::matmul(PH, ops::matmul(P, GH));
  const Tensor outside = ops::sub(left, ops::matmul(A, ops::matmul(P, left)));
  const Tensor beyond = ops::sub(right, ops::matmul(ops::matmul(right, P), A));
  return ops::sub(ops::add(outside, beyond), first);
}

void lstsq_gradient(Backward& b) {
  const Tensor A = b["self"];
  const bool vectors = A.dim() == static_cast<int64_t>(b.sizes("b").size()) + 1;
  auto column = [&](const Tensor& t) { return vectors && t.defined() ? ops::unsqueeze(t, -1) : t; };
  const Tensor B = column(b["b"]), P = pseudo_inverse(A), G = column(b.grad(0)),
               lengths = b.grad(1);
  Tensor A_grad, B_grad;
  if (G.defined()) {
    if (b.needs("b")) B_grad = ops::matmul(ops::mH(P), G);
    if (b.needs("self")) A_grad = pseudo_inverse_gradient(A, P, ops::matmul(G, ops::mH(B)));
  }
  if (lengths.defined() && lengths.numel() > 0) {
    const Tensor X = ops::matmul(P, B);
    const Tensor rest =
        ops::mul(ops::sub(ops::matmul(A, X), B), ops::mul(ops::unsqueeze(lengths, -2), 2));
    const Tensor more = ops::matmul(rest, ops::mH(X));
    A_grad = A_grad.defined() ? ops::add(A_grad, more) : more;
    B_grad = B_grad.defined() ? ops::sub(B_grad, rest) : ops::neg(rest);
  }
  if (b.needs("self") && A_grad.defined()) b.set("self", ops::sum_to_size(A_grad, b.sizes("self")));
  if (!b.needs("b") || !B_grad.defined()) return;
  b.set("b", ops::sum_to_size(vectors ? ops::squeeze(B_grad, -1) : B_grad, b.sizes("b")));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_lstsq){
    .schema =
        "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
        "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    .doc =
        "X that minimises |self X - b| for matrices self (..., m, n), by QR (gels), QR with pivots "
        "(gelsy, unless told otherwise) or singular values (gelsd, gelss).",
    .forms = function | out,
    .python_module = "linalg",
    .flags = shape_from_data,
    .autocast_cpu = Autocast::Float32,
    .cpu = typed_kernel<linalg_lstsq>,
    .derivatives = {vjp(names("self", "b"), lstsq_gradient, saves("self", "b"))},
    .not_differentiable = names("rank", "singular_values"),
    .batch = batch::least_squares,
};
