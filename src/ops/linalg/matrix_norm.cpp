// Norms of matrices, and linalg.norm, which chooses between those and norms of vectors.
#include "ops/linalg/matrix_norm.h"

#include <cmath>

#include "dispatch/out_dtype.h"
#include "dispatch/typed.h"
#include "dispatch/warn_once.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/linalg/checks.h"
#include "ops/linalg/svd.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/variance.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using namespace linalg;
using MaybeDType = std::optional<DType>;
using MaybeDims = std::optional<IntSpan>;

// The two dimensions of the matrices, counted from the front.
std::pair<int64_t, int64_t> matrix_dims(const Tensor& self, IntSpan dim) {
  const DType d = self.dtype();
  check_kind(ErrorKind::NotImplemented, is_differentiable(d),
             "linalg.matrix_norm(): A must be floating point or complex; got ", name(d));
  check(self.dim() >= 2, "linalg.matrix_norm(): A must have at least 2 dimensions; got ",
        self.dim());
  check(dim.size() == 2, "linalg.matrix_norm(): dim must name two dimensions; got ", str(dim));
  const int64_t rows = wrap_dim(dim[0], self.dim()), columns = wrap_dim(dim[1], self.dim());
  check(rows != columns, "linalg.matrix_norm(): dim must name two different dimensions; got ",
        dim[0], " and ", dim[1]);
  return {rows, columns};
}

// Zeros, without a history: nothing was summed.
Tensor largest_of_none(const Tensor& sums, int64_t dim, bool keepdim) {
  IntVec sizes;
  for (int64_t d = 0; d < sums.dim(); ++d)
    if (d != dim || keepdim) sizes.push_back(d == dim ? 1 : sums.size(d));
  return ops::new_zeros(sums, sizes);
}

// The largest or smallest sum of magnitudes: of a column for order 1, of a row for infinity.
Tensor extreme_sum(const Tensor& self, int64_t summed, int64_t other, bool largest, bool keepdim,
                   MaybeDType dtype) {
  const Tensor sums =
      ops::linalg_vector_norm(self, 1, std::optional<IntList>(IntList{summed}), keepdim, dtype);
  const int64_t left = keepdim || other < summed ? other : other - 1;
  if (largest && sums.size(left) == 0) return largest_of_none(sums, left, keepdim);
  return largest ? ops::amax(sums, IntList{left}, keepdim)
                 : ops::amin(sums, IntList{left}, keepdim);
}

// What singular values, along the last dimension, say: the sum of all, or an extreme one.
enum class OfValues { Sum, Largest, Smallest };

Tensor reduced_values(const Tensor& S, OfValues what) {
  if (what == OfValues::Sum) return ops::sum(S, IntList{-1});
  if (what == OfValues::Smallest) return ops::amin(S, IntList{-1});
  return S.size(-1) == 0 ? largest_of_none(S, S.dim() - 1, false) : ops::amax(S, IntList{-1});
}

Tensor norm_by_values(const Tensor& self, int64_t rows, int64_t columns, OfValues what,
                      bool keepdim, MaybeDType dtype) {
  check_solvable(self.dtype(), "linalg.matrix_norm");
  const Tensor A = dtype ? ops::to(self, *dtype) : self;
  const Tensor matrices = ops::movedim(A, IntList{rows, columns}, IntList{-2, -1});
  const Tensor norm = reduced_values(ops::linalg_svdvals(matrices), what);
  if (!keepdim) return norm;
  const Tensor kept = ops::unsqueeze(ops::unsqueeze(norm, -1), -1);
  return ops::movedim(kept, IntList{-2, -1}, IntList{rows, columns});
}

Tensor matrix_norm(const Tensor& self, const Scalar& order, IntSpan dim, bool keepdim,
                   MaybeDType dtype) {
  const auto [rows, columns] = matrix_dims(self, dim);
  const double ord = order.to<double>(), size = std::fabs(ord);
  check(size == 1 || size == 2 || std::isinf(size),
        "linalg.matrix_norm(): ord must be 1, 2, inf or one of these negated; got ", ord);
  if (size == 2)
    return norm_by_values(self, rows, columns, ord > 0 ? OfValues::Largest : OfValues::Smallest,
                          keepdim, dtype);
  return size == 1 ? extreme_sum(self, rows, columns, ord > 0, keepdim, dtype)
                   : extreme_sum(self, columns, rows, ord > 0, keepdim, dtype);
}

Tensor matrix_norm_named(const Tensor& self, std::string_view order, IntSpan dim, bool keepdim,
                         MaybeDType dtype) {
  const auto [rows, columns] = matrix_dims(self, dim);
  check(order == "fro" || order == "nuc",
        "linalg.matrix_norm(): ord must be 'fro' or 'nuc' where it is a word; got ", order);
  if (order == "nuc") return norm_by_values(self, rows, columns, OfValues::Sum, keepdim, dtype);
  return ops::linalg_vector_norm(self, 2, std::optional<IntList>(IntList{rows, columns}), keepdim,
                                 dtype);
}

void check_norm_dims(const Tensor& self, bool has_order, const MaybeDims& dim) {
  if (dim)
    return check(dim->size() == 1 || dim->size() == 2,
                 "linalg.norm(): dim must name one or two dimensions; got ", str(*dim));
  check(!has_order || self.dim() == 1 || self.dim() == 2,
        "linalg.norm(): with ord and without dim A must have 1 or 2 dimensions; "
        "got ",
        self.dim());
}

IntVec dims_or_last_two(const MaybeDims& dim) { return dim ? IntVec(*dim) : IntVec{-2, -1}; }

Tensor norm(const Tensor& self, const std::optional<Scalar>& order, const MaybeDims& dim,
            bool keepdim, MaybeDType dtype) {
  check_norm_dims(self, order.has_value(), dim);
  const bool of_matrices = order && (dim ? dim->size() == 2 : self.dim() == 2);
  if (of_matrices)
    return ops::linalg_matrix_norm(self, *order, dims_or_last_two(dim), keepdim, dtype);
  const std::optional<IntList> over = dim ? std::optional<IntList>(IntList(*dim)) : std::nullopt;
  return ops::linalg_vector_norm(self, order.value_or(Scalar(2)), over, keepdim, dtype);
}

Tensor norm_named(const Tensor& self, std::string_view order, const MaybeDims& dim, bool keepdim,
                  MaybeDType dtype) {
  check_norm_dims(self, true, dim);
  check(dim ? dim->size() == 2 : self.dim() == 2, "linalg.norm(): ord '", order,
        "' needs two dimensions");
  return ops::linalg_matrix_norm(self, order, dims_or_last_two(dim), keepdim, dtype);
}

Tensor nuclear_norm_dim(const Tensor& self, IntSpan dim, bool keepdim) {
  static constinit std::atomic<bool> told{false};
  warn_once(
      told,
      "nuclear_norm(): is deprecated in favour of linalg.matrix_norm(A, 'nuc', dim, keepdim)");
  return ops::linalg_matrix_norm(self, std::string_view("nuc"), dim, keepdim);
}
Tensor nuclear_norm(const Tensor& self, bool keepdim) {
  return nuclear_norm_dim(self, IntList{-2, -1}, keepdim);
}

Tensor frobenius_norm(const Tensor& self, IntSpan dim, bool keepdim) {
  static constinit std::atomic<bool> told{false};
  warn_once(told,
            "frobenius_norm(): is deprecated in favour of linalg.vector_norm(A, 2, dim, keepdim)");
  check(dim.size() <= 2, "frobenius_norm(): dim must name at most two dimensions; got ", str(dim));
  return ops::norm(self, Scalar(2), dim, keepdim);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_matrix_norm){
    .schema =
        "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
    .doc =
        "Norms of matrices: the largest column sum of magnitudes (1), row sum (inf) or singular "
        "value (2), or the smallest one (-1, -inf, -2).",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out",
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .any = typed_kernel<matrix_norm>,
};
OP(linalg_matrix_norm_str_ord){
    .schema =
        "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool "
        "keepdim=False, *, ScalarType? dtype=None) "
        "-> Tensor",
    .doc = "Frobenius norms of matrices, or nuclear ones: sums of singular values.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .any = typed_kernel<matrix_norm_named>,
};
OP(linalg_norm){
    .schema =
        "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
    .doc =
        "Norms of vectors, or of matrices where an order is given and there are two dimensions to "
        "reduce.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out",
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .any = typed_kernel<norm>,
};
OP(linalg_norm_ord_str){
    .schema =
        "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
    .doc = "Norms of matrices by name.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .any = typed_kernel<norm_named>,
};
OP(frobenius_norm_dim){
    .schema = "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    .doc = "Frobenius norms of matrices, or norms of vectors; linalg.vector_norm says it better.",
    .forms = function | out,
    .out_name = "out",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<frobenius_norm>,
};
OP(nuclear_norm){
    .schema = "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    .doc = "Sums of the singular values of matrices; linalg.matrix_norm says it better.",
    .forms = function | out,
    .out_name = "out",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<nuclear_norm>,
};
OP(nuclear_norm_dim){
    .schema = "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    .doc = "Sums of the singular values of matrices that two dimensions span.",
    .forms = function | out,
    .out_name = "dim_out",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<nuclear_norm_dim>,
};
