// Searching sorted sequences, distinct values, histograms, covariance.
#include "ops/reduce/statistics.h"

#include "dispatch/data_sizes.h"
#include "dispatch/out_dtype.h"
#include "dispatch/warn_once.h"
#include "dispatch/warnings.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/sort/search.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/powers.h"
#include "ops/matmul/matmul.h"
#include "ops/meta_rules.h"
#include "ops/reduce/batch.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;
using MaybeText = std::optional<std::string_view>;

// --- searchsorted

bool from_right(bool right, const MaybeText& side) {
  if (!side) return right;
  check(*side == "left" || *side == "right",
        "searchsorted(): side must be 'left' or 'right'; got '", *side, "'");
  check(!right || *side == "right",
        "searchsorted(): side and right must agree; got 'left' and True");
  return *side == "right";
}

void check_sorter(const Tensor& sorted, const Tensor& sorter) {
  check(same_sizes(sorted.sizes(), sorter.sizes()),
        "searchsorted(): sorter must have the boundaries' shape, ", str(sorted.sizes()), "; got ",
        str(sorter.sizes()));
  check(sorter.dtype() == DType::Int64, "searchsorted(): sorter must have dtype int64; got ",
        facula::name(sorter.dtype()));
  if (sorter.is_meta() || sorter.numel() == 0) return;
  const auto [low, high] = ops::aminmax(sorter);
  check(ops::item(low).to<int64_t>() >= 0 &&
            ops::item(high).to<int64_t>() < sorted.sizes()[sorted.dim() - 1],
        "searchsorted(): numbers of sorter must be positions in boundaries");
}

void warn_of_copies(const Tensor& sorted, const Value& self) {
  static constinit std::atomic<bool> told{false}, told_of_sorted{false};
  if (self.is_tensor() && !self.as_tensor().is_contiguous())
    warn_once(told,
              "searchsorted(): input is not contiguous and is copied; contiguous() does it once");
  if (!sorted.is_contiguous())
    warn_once(told_of_sorted,
              "searchsorted(): boundaries are not contiguous and are copied; contiguous() does it "
              "once");
}

void check_rows(const Tensor& sorted, const Value& self) {
  check(sorted.dim() > 0, "searchsorted(): boundaries must have a dimension; got a 0-dim tensor");
  if (sorted.dim() == 1) return;
  const bool tensor = self.is_tensor() && self.as_tensor().dim() > 0;
  check(tensor, "searchsorted(): one number is looked up in 1-D boundaries; got ", sorted.dim(),
        "-D");
  const Tensor& t = self.as_tensor();
  bool fits = t.dim() == sorted.dim();
  for (int64_t d = 0; fits && d + 1 < t.dim(); ++d) fits = t.sizes()[d] == sorted.sizes()[d];
  check(fits,
        "searchsorted(): boundaries must be 1-D or have input's shape but for the last "
        "dimension; got ",
        str(sorted.sizes()), " and ", str(t.sizes()));
}

void meta_search(Meta& m, const Tensor& sorted, const Value& self, bool int32, bool right,
                 MaybeText side, const Tensor& sorter) {
  check_rows(sorted, self);
  warn_of_copies(sorted, self);
  from_right(right, side);
  if (sorter.defined()) check_sorter(sorted, sorter);
  const DType d = int32 ? DType::Int32 : DType::Int64;
  check(!int32 || sorted.sizes()[sorted.dim() - 1] < INT32_MAX,
        "searchsorted(): out_int32 takes fewer than ", INT32_MAX, " boundaries; got ",
        sorted.sizes()[sorted.dim() - 1]);
  m.result(0, self.is_tensor() ? self.as_tensor().sizes() : IntSpan(), d);
}

Tensor prepared(const Tensor& t, DType d) {
  return cpu::contiguous_values(t.dtype() == d ? t : cpu::converted(t, d));
}

void search(const Tensor& sorted, const Value& self, bool, bool right, MaybeText side,
            const Tensor& sorter, const Tensor& out) {
  const Tensor values = self.is_tensor() ? self.as_tensor() : number_tensor(self);
  const Value both[] = {pack(sorted), self};
  const DType d = result_type(both);
  const Tensor order = sorter.defined() ? cpu::contiguous(sorter) : Tensor();
  cpu::search_sorted(prepared(sorted, d), prepared(values, d), from_right(right, side), order, out);
}

void check_boundaries(const Tensor& boundaries) {
  check(boundaries.dim() == 1, "bucketize(): boundaries must have 1 dimension; got ",
        boundaries.dim());
}
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool int32, bool right) {
  check_boundaries(boundaries);
  return ops::searchsorted(boundaries, self, int32, right);
}
Tensor bucketize_number(const Scalar& self, const Tensor& boundaries, bool int32, bool right) {
  check_boundaries(boundaries);
  return ops::searchsorted(boundaries, Operand(self), int32, right);
}

// --- unique

using MaybeDim = std::optional<int64_t>;

// The sizes of self with those of a dimension replaced, and strides as of memory in which that
// dimension comes first.
void result_of_slices(Meta& m, const Tensor& self, int64_t dim, int64_t n) {
  IntVec sizes(self.sizes()), strides(self.sizes().size());
  int64_t step = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    if (d == dim) continue;
    strides[d] = step;
    step *= sizes[d];
  }
  strides[dim] = step;
  sizes[dim] = n;
  m.result(0, sizes, self.dtype(), strides);
}

// The distinct values of self or its distinct slices along a dimension, the places of its elements
// among them, and their counts, unless `counts` is none: there is no such result.
void meta_distinct(Meta& m, const Tensor& self, MaybeDim dim, bool inverse,
                   std::optional<bool> counts) {
  const bool slices = dim && self.dim() > 0;
  const int64_t d = slices ? wrap_dim(*dim, self.dim()) : 0;
  const int64_t length = slices ? self.sizes()[d] : self.numel();
  const int64_t n = size_from_data(m.op_name(), length);
  if (slices)
    result_of_slices(m, self, d, n);
  else
    m.result(0, IntList{n}, self.dtype());
  m.result(1,
           !inverse ? IntSpan(IntList{0})
           : slices ? IntSpan(IntList{length})
                    : self.sizes(),
           DType::Int64);
  if (counts) m.result(2, IntList{*counts ? n : 0}, DType::Int64);
}
void meta_unique2(Meta& m, const Tensor& self, bool, bool inverse, bool counts) {
  meta_distinct(m, self, std::nullopt, inverse, counts);
}
void meta_unique1(Meta& m, const Tensor& self, bool, bool inverse) {
  meta_distinct(m, self, std::nullopt, inverse, std::nullopt);
}
void meta_unique_dim(Meta& m, const Tensor& self, int64_t dim, bool, bool inverse, bool counts) {
  meta_distinct(m, self, dim, inverse, counts);
}
void meta_unique_dim_consecutive(Meta& m, const Tensor& self, int64_t dim, bool inverse,
                                 bool counts) {
  meta_distinct(m, self, dim, inverse, counts);
}
void meta_unique_consecutive(Meta& m, const Tensor& self, bool inverse, bool counts, MaybeDim dim) {
  meta_distinct(m, self, dim, inverse, counts);
}

TensorTriple unique2(const Tensor& self, bool, bool inverse, bool counts) {
  return cpu::unique_values(self, false, inverse, counts, "unique");
}
std::tuple<Tensor, Tensor> unique1(const Tensor& self, bool, bool inverse) {
  const auto [values, places, counts] = cpu::unique_values(self, false, inverse, false, "unique");
  return {values, places};
}
TensorTriple unique_dim(const Tensor& self, int64_t dim, bool, bool inverse, bool counts) {
  return cpu::unique_slices(self, dim, false, inverse, counts, "unique_dim");
}
TensorTriple unique_dim_consecutive(const Tensor& self, int64_t dim, bool inverse, bool counts) {
  return cpu::unique_slices(self, dim, true, inverse, counts, "unique_dim");
}
TensorTriple unique_consecutive(const Tensor& self, bool inverse, bool counts,
                                std::optional<int64_t> dim) {
  if (dim && (self.dim() != 1 || *dim != 0))
    return unique_dim_consecutive(self, *dim, inverse, counts);
  return cpu::unique_values(self, true, inverse, counts, "unique");
}

// --- histograms, membership

void meta_bincount(Meta& m, const Tensor& self, const Tensor& weights, int64_t minlength) {
  cpu::check_bincount(self, weights, minlength);
  if (self.numel() == 0) return m.result(0, IntList{minlength}, DType::Int64);
  const int64_t n = size_from_data(m.op_name());
  const bool single = weights.defined() && weights.dtype() == DType::Float32;
  const DType sums = single ? DType::Float32 : DType::Float64;
  m.result(0, IntList{n}, weights.defined() ? sums : DType::Int64);
}
Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  return cpu::bincount(self, weights, minlength);
}

void meta_histc(Meta& m, const Tensor& self, int64_t bins, const Scalar&, const Scalar&) {
  check(bins > 0, "histogram(): bins must be positive; got ", bins);
  m.result(0, IntVec{bins}, self.dtype());
}

void check_member(DType d) {
  check_kind(ErrorKind::NotImplemented, !is_complex(d) && d != DType::Bool,
             "isin(): no elements of this dtype are compared; got ", facula::name(d));
}
void meta_isin(Meta& m, const Value& elements, const Value& tests, bool, bool) {
  for (const Value* v : {&elements, &tests})
    check_member(v->is_tensor() ? v->as_tensor().dtype() : v->as_scalar().dtype());
  m.result(0, elements.is_tensor() ? elements.as_tensor().sizes() : IntSpan(), DType::Bool);
}
void isin(const Value& elements, const Value& tests, bool, bool invert, const Tensor& out) {
  const Value both[] = {elements, tests};
  const DType d = result_type(both);
  const Tensor x = elements.is_tensor() ? elements.as_tensor() : number_tensor(elements);
  const Tensor y = tests.is_tensor() ? tests.as_tensor() : number_tensor(tests);
  cpu::is_in(prepared(x, d), prepared(y, d), invert, out);
}

// --- covariance

Tensor as_rows(const char* op, const Tensor& self) {
  check(self.dim() <= 2, op, "(): input must have at most 2 dimensions; got ", self.dim());
  return self.dim() < 2 ? ops::view(ops::contiguous(self), {1, -1}) : self;
}

void check_weights(const Tensor& w, const char* name, bool fits, const char* kind,
                   int64_t observations) {
  check(w.dim() <= 1, "cov(): ", name, " must have at most 1 dimension; got ", w.dim());
  check(fits, "cov(): ", name, " must have a ", kind, " dtype; got ", facula::name(w.dtype()));
  check(w.numel() == observations, "cov(): ", name, " must have one element for each of the ",
        observations, " observations; got ", w.numel());
  check(observations == 0 || w.is_meta() || ops::item(ops::min(ops::detach(w))).to<double>() >= 0,
        "cov(): ", name, " cannot be negative");
}

// The product of both weights, or undefined.
Tensor observation_weights(const Tensor& fweights, const Tensor& aweights, int64_t observations) {
  if (fweights.defined())
    check_weights(fweights, "fweights", is_integral(fweights.dtype(), false), "integral",
                  observations);
  if (aweights.defined())
    check_weights(aweights, "aweights", is_floating(aweights.dtype()), "floating point",
                  observations);
  if (fweights.defined() && aweights.defined()) return ops::mul(fweights, aweights);
  return fweights.defined() ? fweights : aweights;
}

// What the weighted products are divided by.
Tensor normaliser(const Tensor& sum, const Tensor& w, const Tensor& aweights, int64_t correction) {
  if (correction == 0 || !aweights.defined()) return ops::sub(sum, Scalar(correction));
  return ops::sub(sum,
                  ops::mul(ops::div(ops::sum(ops::mul(w, aweights)), sum), Scalar(correction)));
}

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  check(self.dim() <= 2, "cov(): input must have at most 2 dimensions; got ", self.dim());
  check_kind(ErrorKind::NotImplemented, self.dtype() != DType::Bool,
             "cov(): input must be of a number type; got bool");
  const Tensor x = as_rows("cov", self);
  const int64_t n = x.sizes()[1];
  static constexpr int64_t columns[] = {1};
  const std::optional<IntList> along{IntList(columns)};
  const Tensor w = observation_weights(fweights, aweights, n);
  const bool weighted = w.defined();
  check(!weighted || n == 0 || w.is_meta() || ops::item(ops::sum(ops::detach(w))).to<double>() != 0,
        "cov(): the weights' sum must not be 0");
  const Tensor wide = is_integral(x.dtype(), true) ? ops::to(x, default_dtype()) : x;
  const Tensor total = weighted ? ops::sum(w) : Tensor();
  const Tensor mean = weighted ? ops::div(ops::sum(ops::mul(wide, w), along), total)
                               : ops::mean(wide, along, false);
  const Tensor centered = ops::sub(wide, ops::unsqueeze(mean, 1));
  const Tensor right = weighted ? ops::mul(centered, w) : centered;
  const Tensor product = ops::mm(centered, ops::conj(ops::t(right)));
  const Scalar freedom(static_cast<double>(n) - static_cast<double>(correction));
  if (!weighted && n <= correction)
    warn(
        concat("cov(): expected more observations than correction, degrees of freedom are none; "
               "got ",
               n, " and ", correction));
  const Tensor count =
      weighted ? normaliser(total, w, aweights, correction) : ops::new_full(product, {}, freedom);
  const Tensor positive = is_complex(count.dtype()) ? count : ops::clamp_min(count, Scalar(0));
  return ops::squeeze(ops::div(product, positive));
}

Tensor corrcoef(const Tensor& self) {
  check(self.dim() <= 2, "corrcoef(): input must have at most 2 dimensions; got ", self.dim());
  const Tensor c = ops::cov(self);
  if (c.dim() == 0) return ops::div(c, c);
  const Tensor d = ops::diagonal(c);
  const Tensor deviation = ops::sqrt(is_complex(d.dtype()) ? ops::real(d) : d);
  const Tensor r =
      ops::div(ops::div(c, ops::reshape(deviation, {-1, 1})), ops::unsqueeze(deviation, 0));
  if (!is_complex(r.dtype())) return ops::clamp(r, Scalar(-1), Scalar(1));
  return ops::complex(ops::clamp(ops::real(r), Scalar(-1), Scalar(1)),
                      ops::clamp(ops::imag(r), Scalar(-1), Scalar(1)));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(searchsorted_Tensor){
    .schema =
        "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
        "right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor",
    .doc =
        "Where values belong in sorted rows: the first place not below them (right: above them), "
        "int64 or int32.",
    .forms = function | out,
    .out_name = "Tensor_out",
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .numbers = names("self"),
    .meta = typed_meta<meta_search>,
    .cpu = typed_kernel<search>,
    .not_differentiable = names("sorted_sequence", "self", "result"),
    .batch = batch::search,
};
OP(bucketize_Tensor){
    .schema =
        "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool "
        "right=False) -> Tensor",
    .doc = "The bucket of each value between sorted boundaries.",
    .forms = function | out,
    .out_name = "Tensor_out",
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<bucketize>,
    .not_differentiable = names("self", "boundaries", "result"),
};
OP(bucketize_Scalar){
    .schema =
        "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool "
        "right=False) -> Tensor",
    .doc = "The bucket of a number between sorted boundaries.",
    .composite = Composite::Explicit,
    .any = typed_kernel<bucketize_number>,
    .not_differentiable = names("boundaries", "result"),
};
OP(_unique2){
    .schema =
        "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool "
        "return_counts=False) -> (Tensor, Tensor, Tensor)",
    .doc = "Distinct values in order, where each element is among them, how often each is there.",
    .flags = shape_from_data,
    .meta = typed_meta<meta_unique2>,
    .cpu = typed_kernel<unique2>,
    .not_differentiable = names("self"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(_unique){
    .schema =
        "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    .doc = "Distinct values in order, and where each element is among them.",
    .flags = shape_from_data,
    .meta = typed_meta<meta_unique1>,
    .cpu = typed_kernel<unique1>,
    .not_differentiable = names("self"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(unique_dim){
    .schema =
        "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
        "return_counts=False) -> "
        "(Tensor, Tensor, Tensor)",
    .doc =
        "Distinct slices along a dimension in order, where each is among them, how often each is "
        "there.",
    .flags = shape_from_data,
    .meta = typed_meta<meta_unique_dim>,
    .cpu = typed_kernel<unique_dim>,
    .not_differentiable = names("self"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(unique_dim_consecutive){
    .schema =
        "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool "
        "return_counts=False) -> "
        "(Tensor, Tensor, Tensor)",
    .doc = "The first of each run of equal slices along a dimension.",
    .flags = shape_from_data,
    .meta = typed_meta<meta_unique_dim_consecutive>,
    .cpu = typed_kernel<unique_dim_consecutive>,
    .not_differentiable = names("self"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(unique_consecutive){
    .schema =
        "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
        "dim=None) -> "
        "(Tensor, Tensor, Tensor)",
    .doc = "The first of each run of equal values, or of equal slices along a dimension.",
    .flags = shape_from_data,
    .meta = typed_meta<meta_unique_consecutive>,
    .cpu = typed_kernel<unique_consecutive>,
    .not_differentiable = names("self"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(bincount){
    .schema = "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    .doc = "How often each integer from zero on is in a 1-d tensor, or the sums of their weights.",
    .forms = function | method | out,
    .flags = shape_from_data,
    .meta = typed_meta<meta_bincount>,
    .cpu = typed_kernel<bincount>,
    .not_differentiable = names("self", "weights", "result"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(histc){
    .schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    .doc =
        "Counts of elements in equal bins from min to max; over the range of the data where they "
        "are equal.",
    .forms = function | method | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_histc>,
    .cpu = typed_kernel<cpu::histc>,
    .not_differentiable = names("self", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(isin_Tensor_Tensor){
    .schema =
        "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, "
        "bool invert=False) -> Tensor",
    .doc = "Whether each element is among the test elements.",
    .forms = function | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .numbers = names("elements", "test_elements"),
    .meta = typed_meta<meta_isin>,
    .cpu = typed_kernel<isin>,
    .not_differentiable = names("elements", "test_elements", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(cov){
    .schema =
        "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
        "Tensor",
    .doc = "Covariance matrix of the rows (variables) over the columns (observations).",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<cov>,
};
OP(corrcoef){
    .schema = "corrcoef(Tensor self) -> Tensor",
    .doc =
        "Pearson's correlation coefficients of the rows (variables) over the columns "
        "(observations).",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<corrcoef>,
};
