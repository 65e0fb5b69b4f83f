// Sorting and what is chosen by order: largest values, medians, modes, quantiles.
#include "ops/sort/sort.h"

#include "dispatch/out_dtype.h"
#include "kernels/cpu/reduce/plan.h"
#include "kernels/cpu/sort/sort.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/rounding.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

// --- shapes

void check_sortable(const char* op, const Tensor& self) {
  check_type(!is_complex(self.dtype()), op, " does not support complex dtypes on CPU");
}

void meta_sort(Meta& m, const Tensor& self, std::optional<bool>, int64_t dim, bool) {
  wrap_dim(dim, self.dim());
  check_sortable("Sort", self);
  m.result_like(0, self, self.dtype());
  m.result_like(1, self, DType::Int64);
}

void meta_topk(Meta& m, const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  const int64_t d = wrap_dim(dim, self.dim());
  check(k >= 0 && k <= (self.dim() ? self.sizes()[d] : 1), "selected index k out of range");
  check_sortable("topk", self);
  check_kind(ErrorKind::NotImplemented, self.dtype() != DType::Bool,
             "topk does not support bool dtypes on CPU");
  IntVec sizes(self.sizes());
  if (self.dim()) sizes[d] = k;
  m.result(0, sizes, self.dtype());
  m.result(1, sizes, DType::Int64);
}

void state_selected(Meta& m, const Tensor& self, int64_t dim, bool keepdim) {
  const IntVec dims = reduction::one_dim(dim, self.dim());
  for (int64_t d : dims)
    check_index(self.sizes()[d] > 0, m.op_name(),
                "(): a dimension of size 0 cannot be reduced; got dim ", d);
  reduction::state(m, 0, self, dims, keepdim, self.dtype());
  reduction::state(m, 1, self, dims, keepdim, DType::Int64);
}

void meta_selected(Meta& m, const Tensor& self, int64_t dim, bool keepdim) {
  state_selected(m, self, dim, keepdim);
}

void meta_kthvalue(Meta& m, const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim());
  state_selected(m, self, dim, keepdim);
  check(k >= 1 && k <= (self.dim() ? self.sizes()[d] : 1),
        "kthvalue(): k is out of range for dimension ", d, "; got ", k);
}

// --- gradients

Tensor selected_gradient(Backward& b) {
  if (!b.grad().defined()) return {};
  return ops::value_selecting_reduction_backward(b.grad(), b.integer("dim"), b["indices"],
                                                 b.sizes("self"), b.flag("keepdim"));
}
Tensor ordered_gradient(Backward& b) {
  if (!b.grad().defined()) return {};
  return ops::value_selecting_reduction_backward(b.grad(), b.integer("dim"), b["indices"],
                                                 b.sizes("self"), true);
}
// Elements equal to the median share the gradient.
Tensor median_gradient(Backward& b) {
  const Tensor self = b["self"], result = b["result"];
  const Tensor mask = ops::logical_or(ops::eq(self, result),
                                      ops::logical_and(ops::isnan(self), ops::isnan(result)));
  return ops::mul(ops::div(b.grad(), ops::sum(mask)), mask);
}

// --- composites

Pair sort_plain(const Tensor& self, int64_t dim, bool descending) {
  return ops::sort(self, std::optional<bool>(false), dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(ops::sort(self, dim, descending));
}
Tensor argsort_stable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(ops::sort(self, std::optional<bool>(stable), dim, descending));
}
Tensor msort(const Tensor& self) { return std::get<0>(ops::sort(self, int64_t{0}, false)); }

Tensor empty_median(const Tensor& self) {
  const Tensor t = ops::new_empty(self, {});
  return ops::fill_(t, Scalar(__builtin_nan(""))), t;
}
Tensor median(const Tensor& self) {
  if (self.numel() == 0) return empty_median(self);
  return std::get<0>(ops::median(ops::reshape(self, {-1}), int64_t{0}, false));
}
Tensor nanmedian(const Tensor& self) {
  if (self.numel() == 0) return empty_median(self);
  return std::get<0>(ops::nanmedian(ops::reshape(self, {-1}), int64_t{0}, false));
}

// --- quantiles

enum class Interpolation { Linear, Lower, Higher, Midpoint, Nearest };

Interpolation interpolation_of(std::string_view name) {
  if (name == "linear") return Interpolation::Linear;
  if (name == "lower") return Interpolation::Lower;
  if (name == "higher") return Interpolation::Higher;
  if (name == "midpoint") return Interpolation::Midpoint;
  check(name == "nearest",
        "quantile(): interpolation must be linear, lower, higher, midpoint or nearest; got ", name);
  return Interpolation::Nearest;
}

void check_quantile(const Tensor& self, const Tensor& q) {
  check(self.numel() > 0, "quantile(): input must have elements");
  check(q.dim() <= 1, "quantile(): q must have at most 1 dimension; got ", q.dim());
  check(self.dtype() == DType::Float32 || self.dtype() == DType::Float64,
        "quantile(): input must be float32 or float64; got ", name(self.dtype()));
  check(q.dtype() == self.dtype(), "quantile(): q must have input's dtype, ", name(self.dtype()),
        "; got ", name(q.dtype()));
  check(q.device() == self.device(), "quantile(): q must be on input's device, ",
        str(self.device()), "; got ", str(q.device()));
  if (q.is_meta()) return;
  const Tensor fits = ops::all(ops::logical_and(ops::ge(q, 0), ops::le(q, 1)), std::nullopt);
  check(ops::item(fits).to<bool>(), "quantile(): numbers of q must be in [0, 1]");
}

// Where in sorted order (fractions between places) each quantile lies; the last place where NaN
// decides.
Tensor ranks_of(const Tensor& sorted, const Tensor& q, bool skip_nan) {
  static constexpr int64_t behind[] = {-1};
  const std::optional<IntList> last{IntList(behind)};
  const Tensor nan = ops::isnan(ops::detach(sorted));
  if (skip_nan) {
    const Tensor numbers = ops::sum(ops::logical_not(nan), last, true);
    const Tensor ranks = ops::mul(q, ops::sub(numbers, 1));
    return ops::masked_fill(ranks, ops::lt(ranks, 0), Scalar(0));
  }
  const double end = static_cast<double>(sorted.sizes()[sorted.dim() - 1] - 1);
  const Tensor ranks = ops::expand(ops::mul(q, end), [&] {
    IntVec sizes(sorted.sizes());
    sizes.back() = q.numel();
    return sizes;
  }());
  return ops::masked_fill(ranks, ops::any(nan, last, true), Scalar(end));
}

// The values to be ordered, along the last dimension; the others have the sizes of one quantile.
Tensor lined_up(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (!dim || self.dim() == 0) {
    if (!keepdim) return ops::reshape(self, {-1});
    IntVec sizes(static_cast<size_t>(self.dim()), 1);
    sizes.push_back(-1);
    return ops::reshape(self, sizes);
  }
  const int64_t d = wrap_dim(*dim, self.dim());
  const Tensor seen = ops::transpose(ops::unsqueeze(self, -1), d, -1);
  return keepdim ? seen : ops::squeeze(seen, d);
}

Tensor quantile_of(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view how, bool skip_nan) {
  const Interpolation kind = interpolation_of(how);
  check_quantile(self, q);
  const Tensor values = lined_up(self, dim, keepdim);
  const auto [sorted, order] = ops::sort(values, int64_t{-1}, false);
  Tensor ranks = ranks_of(sorted, ops::reshape(q, {-1}), skip_nan);
  if (kind == Interpolation::Lower) ranks = ops::floor(ranks);
  if (kind == Interpolation::Higher) ranks = ops::ceil(ranks);
  if (kind == Interpolation::Nearest) ranks = ops::round(ranks);
  // One quantile is taken from the input itself, so that its gradient need not be sorted back.
  auto at = [&](const Tensor& places) {
    return q.dim() == 0 ? ops::gather(values, -1, ops::gather(order, -1, places))
                        : ops::gather(sorted, -1, places);
  };
  const Tensor below = ops::to(ranks, DType::Int64);
  Tensor result = at(below);
  if (kind == Interpolation::Linear || kind == Interpolation::Midpoint) {
    const Tensor weights = kind == Interpolation::Midpoint ? ops::full_like(ranks, Scalar(0.5))
                                                           : ops::sub(ranks, below);
    result = ops::lerp(result, at(ops::to(ops::ceil(ranks), DType::Int64)), weights);
  }
  // In place: results are no views.
  if (q.dim() > 0) result = ops::transpose_(ops::unsqueeze_(result, 0), 0, -1);
  return ops::squeeze_(result, -1);
}

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view how) {
  return quantile_of(self, q, dim, keepdim, how, false);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view how) {
  return quantile_of(self, q, dim, keepdim, how, true);
}
Tensor one_quantile(const Tensor& self, double q) {
  check(q >= 0 && q <= 1, "quantile(): q must be in [0, 1]; got ", q);
  return ops::full({}, Scalar(q), self.dtype(), std::nullopt, self.device());  // of no batch
}
Tensor quantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view how) {
  return quantile_of(self, one_quantile(self, q), dim, keepdim, how, false);
}
Tensor nanquantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                          std::string_view how) {
  return quantile_of(self, one_quantile(self, q), dim, keepdim, how, true);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(sort_stable){
    .schema =
        "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor "
        "values, Tensor indices)",
    .doc =
        "Values in order along a dimension and where they were (int64); equal values keep their "
        "order, NaN is greatest.",
    .forms = function | method | out,
    .out_name = "values_stable",
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_sort>,
    .cpu = typed_kernel<cpu::sort>,
    .derivatives = {vjp("self", ordered_gradient, saves("indices"))},
    .node = "SortBackward1",
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(sort){
    .schema =
        "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    .doc = "Values in order along a dimension and where they were (int64).",
    .forms = function | method | out,
    .out_name = "values",
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<sort_plain>,
    .derivatives = {vjp("self", ordered_gradient, saves("indices"))},
    .node = "SortBackward0",
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(argsort){
    .schema = "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    .doc = "Indices that put a dimension in order: int64.",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<argsort>,
};
OP(argsort_stable){
    .schema =
        "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    .doc = "Indices that put a dimension in order, equal values in their own order: int64.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<argsort_stable>,
};
OP(msort){
    .schema = "msort(Tensor self) -> Tensor",
    .doc = "Values in order along the first dimension.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<msort>,
};
OP(topk){
    .schema =
        "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "
        "values, Tensor indices)",
    .doc = "The k largest (or smallest) values along a dimension and where they are: int64.",
    .forms = function | method | out,
    .out_name = "values",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_topk>,
    .cpu = typed_kernel<cpu::topk>,
    .derivatives = {vjp("self", ordered_gradient, saves("indices"))},
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(kthvalue){
    .schema =
        "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor "
        "indices)",
    .doc = "The k-th smallest value along a dimension, counted from one, and where it is: int64.",
    .forms = function | method | out,
    .out_name = "values",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_kthvalue>,
    .cpu = typed_kernel<cpu::kthvalue>,
    .derivatives = {vjp("self", selected_gradient, saves("indices"))},
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(median_dim){
    .schema =
        "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc =
        "Median along a dimension (the lower of two) and where it is: int64; NaN where there is "
        "one.",
    .forms = function | method | out,
    .out_name = "dim_values",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_selected>,
    .cpu = typed_kernel<cpu::median_dim>,
    .derivatives = {vjp("self", selected_gradient, saves("indices"))},
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(median){
    .schema = "median(Tensor self) -> Tensor",
    .doc = "Median of all elements, the lower of two; NaN where there is one.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<median>,
    .derivatives = {vjp("self", median_gradient, saves("self", "result"))},
};
OP(nanmedian_dim){
    .schema =
        "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor "
        "indices)",
    .doc = "Median along a dimension of what is not NaN, and where it is: int64.",
    .forms = function | method | out,
    .out_name = "dim_values",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_selected>,
    .cpu = typed_kernel<cpu::nanmedian_dim>,
    .derivatives = {vjp("self", selected_gradient, saves("indices"))},
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(nanmedian){
    .schema = "nanmedian(Tensor self) -> Tensor",
    .doc = "Median of all elements that are not NaN.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<nanmedian>,
    .derivatives = {vjp("self", median_gradient, saves("self", "result"))},
};
OP(mode){
    .schema =
        "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc =
        "The most frequent value along a dimension (the smallest of several) and where it is last: "
        "int64.",
    .forms = function | method | out,
    .out_name = "values",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_selected>,
    .cpu = typed_kernel<cpu::mode>,
    .derivatives = {vjp("self", selected_gradient, saves("indices"))},
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(quantile){
    .schema =
        "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
        "interpolation='linear') -> Tensor",
    .doc = "Quantiles of all elements or along a dimension; several q give a new first dimension.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<quantile>,
};
OP(quantile_scalar){
    .schema =
        "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
        "interpolation='linear') -> Tensor",
    .doc = "One quantile of all elements or along a dimension.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<quantile_scalar>,
};
OP(nanquantile){
    .schema =
        "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
        "interpolation='linear') -> Tensor",
    .doc = "quantile() of the elements that are not NaN.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<nanquantile>,
};
OP(nanquantile_scalar){
    .schema =
        "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
        "interpolation='linear') -> Tensor",
    .doc = "One quantile of the elements that are not NaN.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<nanquantile_scalar>,
};
