// Histograms with their edges, in one and more dimensions.
#include "ops/reduce/histogram.h"

#include <cmath>
#include <vector>

#include "core/checked.h"
#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/reduce/histogram.h"
#include "ops/create/range.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

void check_points(const Tensor& self, const Tensor& weight) {
  check_kind(ErrorKind::NotImplemented, is_floating(self.dtype()),
             "\"histogramdd\" not implemented for '", info(self.dtype()).legacy_name, "'");
  check(self.dim() >= 2, "histogramdd(): self must have at least 2 dimensions; got ", self.dim());
  if (!weight.defined()) return;
  check(weight.dtype() == self.dtype(), "histogram(): weight must have the dtype of self, ",
        name(self.dtype()), "; got ", name(weight.dtype()));
  check(same_sizes(weight.sizes(), self.sizes().first(static_cast<size_t>(self.dim() - 1))),
        "histogram(): there must be one weight "
        "for each point; got shape ",
        str(weight.sizes()), " for ", str(self.sizes()));
}

void check_edges(const Tensor& self, std::span<const Tensor> edges) {
  const int64_t dims = self.size(-1);
  check(static_cast<int64_t>(edges.size()) == dims,
        "histogramdd(): there must be edges for each of ", dims, " dimensions; got ", edges.size());
  for (size_t d = 0; d < edges.size(); ++d) {
    const Tensor& e = edges[d];
    check(e.dim() == 1, "histogram(): bins of dimension ", d, " must be a vector; got ", e.dim(),
          " dimensions");
    check(e.numel() > 0, "histogram(): bins of dimension ", d, " must not be empty");
    check(e.dtype() == self.dtype(), "histogram(): bins of dimension ", d,
          " must have the dtype of self, ", name(self.dtype()), "; got ", name(e.dtype()));
  }
}

Tensor as_matrix(const Tensor& t) {
  return ops::reshape(t, {t.size(-1) == 0 ? 0 : t.numel() / t.size(-1), t.size(-1)});
}
Tensor as_vector(const Tensor& t) { return t.defined() ? ops::reshape(t, {-1}) : t; }

void meta_from_bin_tensors(Meta& m, const Tensor& self, std::span<const Tensor> bins,
                           const Tensor& weight, bool) {
  check_points(self, weight);
  check_edges(self, bins);
  IntVec sizes;
  for (const Tensor& e : bins) sizes.push_back(e.numel() - 1);
  m.result(0, sizes, self.dtype());
}
void from_bin_tensors(const Tensor& self, std::span<const Tensor> bins, const Tensor& weight,
                      bool density, const Tensor& out) {
  cpu::histogramdd(as_matrix(self), bins, as_vector(weight), density, out);
}

// --- edges from numbers of bins

struct Interval {
  double low, high;
};

Interval interval_of(const Tensor& column) {
  if (column.numel() == 0 || column.is_meta()) return {0, 1};
  check_kind(ErrorKind::NotImplemented, !is_reduced_float(column.dtype()),
             "\"histogramdd\" not implemented for '", info(column.dtype()).legacy_name, "'");
  const Tensor wide = cpu::contiguous(cpu::converted(column, DType::Float64));
  const double* x = wide.data<double>();
  Interval r{x[0], x[0]};
  for (int64_t i = 0; i < wide.numel(); ++i) {
    if (std::isnan(x[i])) return {x[i], x[i]};
    r = {std::min(r.low, x[i]), std::max(r.high, x[i])};
  }
  return r;
}

Interval checked(Interval r, int64_t d) {
  check(std::isfinite(r.low) && std::isfinite(r.high), "histogram(): the range of dimension ", d,
        " must be finite; got [", r.low, ", ", r.high, "]");
  check(r.low <= r.high, "histogram(): the range of dimension ", d, " must not fall; got [", r.low,
        ", ", r.high, "]");
  return r.low == r.high ? Interval{r.low - 0.5, r.high + 0.5} : r;
}

using Range = std::optional<std::span<const double>>;

void check_bins(const Tensor& self, IntSpan bins, const Range& range, const Tensor& weight) {
  check_points(self, weight);
  const int64_t dims = self.size(-1);
  check(static_cast<int64_t>(bins.size()) == dims,
        "histogramdd(): bins must have one number for each of ", dims, " dimensions; got ",
        bins.size());
  check(!range || static_cast<int64_t>(range->size()) == 2 * dims, "histogram(): range must have ",
        2 * dims, " elements; got ", range ? range->size() : 0);
  for (int64_t d = 0; d < dims; ++d)
    check(bins[d] > 0, "histogram(): bins must be positive; got ", bins[d], " for dimension ", d);
}

std::vector<Tensor> bin_edges(const Tensor& self, IntSpan bins, const Range& range,
                              const Tensor& weight) {
  check_bins(self, bins, range, weight);
  const Tensor points = as_matrix(self);
  std::vector<Tensor> edges;
  for (int64_t d = 0; d < self.size(-1); ++d) {
    const size_t i = static_cast<size_t>(d);
    const Interval r = checked(range ? Interval{(*range)[2 * i], (*range)[2 * i + 1]}
                                     : interval_of(ops::select(points, 1, d)),
                               d);
    const int64_t count = checked_add(bins[i], 1, "histogramdd(): the number of edges");
    edges.push_back(ops::linspace(r.low, r.high, count, self.dtype(), {}, self.device()));
  }
  return edges;
}
std::vector<Tensor> histogramdd_bin_edges(const Tensor& self, IntSpan bins, const Range& range,
                                          const Tensor& weight, bool) {
  return bin_edges(self, bins, range, weight);
}
void meta_from_bin_cts(Meta& m, const Tensor& self, IntSpan bins, const Range& range,
                       const Tensor& weight, bool) {
  check_bins(self, bins, range, weight);
  m.result(0, bins, self.dtype());
}
void from_bin_cts(const Tensor& self, IntSpan bins, const Range& range, const Tensor& weight,
                  bool density, const Tensor& out) {
  from_bin_tensors(self, bin_edges(self, bins, range, weight), weight, density, out);
}

// --- what users call

using ManyDims = std::tuple<Tensor, std::vector<Tensor>>;

Tensor as_points(const Tensor& self) { return ops::reshape(self, {self.numel(), 1}); }

void meta_bins_tensor(Meta& m, const Tensor& self, const Tensor& bins, const Tensor& weight, bool) {
  const Tensor edges[] = {bins}, points = as_points(self);
  check_points(points, as_vector(weight));
  check_edges(points, edges);
  m.result(0, IntList{bins.numel() - 1}, self.dtype());
  m.result(1, bins.sizes(), bins.dtype());
}
void histogram_bins_tensor(const Tensor& self, const Tensor& bins, const Tensor& weight,
                           bool density, const Tensor& hist, const Tensor& edges) {
  cpu::copy(edges, bins);
  from_bin_tensors(as_points(self), {&edges, 1}, weight, density, hist);
}
void meta_bin_ct(Meta& m, const Tensor& self, int64_t bins, const Range& range,
                 const Tensor& weight, bool) {
  check_bins(as_points(self), {&bins, 1}, range, as_vector(weight));
  m.result(0, IntList{bins}, self.dtype());
  m.result(1, IntList{checked_add(bins, 1, "histogram(): the number of edges")}, self.dtype());
}
void histogram_bin_ct(const Tensor& self, int64_t bins, const Range& range, const Tensor& weight,
                      bool density, const Tensor& hist, const Tensor& edges) {
  const Tensor points = as_points(self), weights = as_vector(weight);
  cpu::copy(edges, bin_edges(points, {&bins, 1}, range, weights)[0]);
  from_bin_tensors(points, {&edges, 1}, weights, density, hist);
}

ManyDims histogramdd(const Tensor& self, IntSpan bins, const Range& range, const Tensor& weight,
                     bool density) {
  std::vector<Tensor> edges = ops::_histogramdd_bin_edges(self, bins, range, weight, density);
  const Tensor hist = ops::_histogramdd_from_bin_cts(self, bins, range, weight, density);
  return {hist, std::move(edges)};
}
ManyDims histogramdd_int_bins(const Tensor& self, int64_t bins, const Range& range,
                              const Tensor& weight, bool density) {
  const IntVec same(static_cast<size_t>(self.dim() > 0 ? self.size(-1) : 0), bins);
  return histogramdd(self, same, range, weight, density);
}
ManyDims histogramdd_TensorList_bins(const Tensor& self, std::span<const Tensor> bins, const Range&,
                                     const Tensor& weight, bool density) {
  const Tensor hist = ops::_histogramdd_from_bin_tensors(self, bins, weight, density);
  return {hist, {bins.begin(), bins.end()}};
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(histogram_bins_tensor){
    .schema =
        "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool "
        "density=False) -> "
        "(Tensor hist, Tensor bin_edges)",
    .doc = "How many elements of self, or what weight of them, lie between neighbouring edges.",
    .forms = function | method | out,
    .out_name = "bins_tensor_out",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_bins_tensor>,
    .cpu = typed_kernel<histogram_bins_tensor>,
    .hole = "counts have no derivative",
};
OP(histogram_bin_ct){
    .schema =
        "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
        "bool density=False) -> "
        "(Tensor hist, Tensor bin_edges)",
    .doc = "Histogram of bins of one width over range, or over the values that self has.",
    .forms = function | method | out,
    .out_name = "bin_ct_out",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_bin_ct>,
    .cpu = typed_kernel<histogram_bin_ct>,
    .hole = "counts have no derivative",
};
OP(_histogramdd_bin_edges){
    .schema =
        "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? "
        "weight=None, bool density=False) -> Tensor[]",
    .doc = "Edges of bins of one width for each dimension of points self (..., D).",
    .forms = function | out,
    .any = typed_kernel<histogramdd_bin_edges>,
    .hole = "counts have no derivative",
};
OP(_histogramdd_from_bin_cts){
    .schema =
        "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? "
        "weight=None, bool density=False) -> Tensor",
    .doc = "Histogram of points self (..., D) over the edges that _histogramdd_bin_edges gives.",
    .forms = function | out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_from_bin_cts>,
    .cpu = typed_kernel<from_bin_cts>,
    .hole = "counts have no derivative",
};
OP(_histogramdd_from_bin_tensors){
    .schema =
        "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool "
        "density=False) -> Tensor",
    .doc = "Histogram of points self (..., D) over given edges.",
    .forms = function | out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_from_bin_tensors>,
    .cpu = typed_kernel<from_bin_tensors>,
    .hole = "counts have no derivative",
};
OP(histogramdd){
    .schema =
        "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool "
        "density=False) -> "
        "(Tensor hist, Tensor[] bin_edges)",
    .doc =
        "Histogram of points self (..., D) with so many bins along each dimension, and the bins' "
        "edges.",
    .composite = Composite::Implicit,
    .any = typed_kernel<histogramdd>,
};
OP(histogramdd_int_bins){
    .schema =
        "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, "
        "bool density=False) -> "
        "(Tensor hist, Tensor[] bin_edges)",
    .doc = "Histogram of points with as many bins along every dimension.",
    .composite = Composite::Implicit,
    .any = typed_kernel<histogramdd_int_bins>,
};
OP(histogramdd_TensorList_bins){
    .schema =
        "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? "
        "weight=None, bool density=False) -> "
        "(Tensor hist, Tensor[] bin_edges)",
    .doc = "Histogram of points with given edges along each dimension.",
    .composite = Composite::Implicit,
    .any = typed_kernel<histogramdd_TensorList_bins>,
};
