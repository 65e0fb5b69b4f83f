// LDL factors of symmetric and Hermitian matrices.
#include "ops/linalg/ldl.h"

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/linalg/ldl.h"
#include "ops/linalg/batch.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/inverse.h"

namespace facula {
namespace {

using namespace linalg;

void meta_ldl_factor(Meta& m, const Tensor& self, bool, bool) {
  check_square(self, "linalg.ldl_factor");
  check_solvable(self.dtype(), "linalg.ldl_factor");
  m.result(0, self.sizes(), self.dtype(), column_strides(self.sizes()));
  m.result(1, self.sizes().first(self.sizes().size() - 1), DType::Int32);
  m.result(2, leading(self), DType::Int32);
}

void ldl_factor(const Tensor& self, bool hermitian, bool check_errors, const Tensor& LD,
                const Tensor& pivots, const Tensor& info) {
  cpu::ldl_factor(self, hermitian, LD, pivots, info);
  if (check_errors) ops::_linalg_check_errors(info, "linalg.ldl_factor_ex", self.dim() == 2);
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  const auto [LD, pivots, info] = ops::linalg_ldl_factor_ex(self, hermitian);
  ops::_linalg_check_errors(info, "linalg.ldl_factor", self.dim() == 2);
  return {LD, pivots};
}

void meta_ldl_solve(Meta& m, const Tensor& LD, const Tensor& pivots, const Tensor& B, bool) {
  constexpr const char* op = "linalg.ldl_solve";
  check_square(LD, op);
  check_matrices(B, op, "B");
  check(pivots.dtype() == DType::Int32, op, "(): pivots must be int32; got ", name(pivots.dtype()));
  check(std::ranges::equal(pivots.sizes(), LD.sizes().first(LD.sizes().size() - 1)), op,
        "(): expected a pivot for each row of LD; got ", str(pivots.sizes()), " and ",
        str(LD.sizes()));
  check(B.size(-2) == LD.size(-1), op, "(): shapes of A and B do not fit the equation AX = B; got ",
        str(LD.sizes()), " and ", str(B.sizes()));
  check_same_dtype(LD, B, op);
  check_solvable(LD.dtype(), op);
  const IntVec sizes =
      with_sizes(broadcast_sizes(leading(LD), leading(B)), {B.size(-2), B.size(-1)});
  m.result(0, sizes, B.dtype(), column_strides(sizes));
}

[[noreturn]] void no_derivative(const char* op) {
  throw Error(ErrorKind::Runtime, "derivative for aten::", op, " is not implemented");
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_ldl_factor_ex){
    .schema =
        "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
        "(Tensor LD, Tensor pivots, Tensor info)",
    .doc =
        "Factors L D L^T, or L D L^H, of symmetric or Hermitian matrices (..., n, n), of which the "
        "lower triangle is read: L and D in one matrix, the pivots, and for each 0 or the number "
        "of the first block of D that is singular.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_ldl_factor>,
    .cpu = typed_kernel<ldl_factor>,
    .derivatives = {vjp("self",
                        [](Backward&) -> Tensor { no_derivative("linalg_ldl_factor_ex"); })},
    .node = "torch::autograd::NotImplemented",
    .not_differentiable = names("pivots", "info"),
    .batch = batch::leading,
};
OP(linalg_ldl_factor){
    .schema =
        "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    .doc = "As linalg.ldl_factor_ex; RuntimeError where a block of D is singular.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<linalg_ldl_factor>,
};
OP(linalg_ldl_solve){
    .schema =
        "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    .doc = "X with A X = B for matrices A whose LDL factors are given; leading sizes broadcast.",
    .forms = function | out,
    .python_module = "linalg",
    .flags = exact_out | runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_ldl_solve>,
    .cpu = typed_kernel<cpu::ldl_solve>,
    .derivatives = {vjp(names("LD", "B"), [](Backward&) { no_derivative("linalg_ldl_solve"); })},
    .node = "torch::autograd::NotImplemented",
    .not_differentiable = names("pivots"),
    .batch = batch::factored_systems,
};
