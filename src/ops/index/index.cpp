// Indexing with tensors: index, index_put_, masks, nonzero.
#include "ops/index/index.h"

#include <algorithm>

#include "dispatch/data_sizes.h"
#include "dispatch/out_dtype.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/logical.h"
#include "ops/index/batch.h"
#include "ops/index/indexed.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using indexed::apart_from;
using indexed::check_cpu;
using indexed::element;
using indexed::start_from;
using indexed::widened;

// --- advanced indexing: index tensors brought into the result's shape

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

bool is_meta_mask(const Tensor& t) { return t.defined() && t.is_meta() && is_mask(t); }

// What stands for the places of masks on the meta device: as many as all of them have in common.
Tensor places_without_data(std::span<const Tensor> indices) {
  int64_t least = INT64_MAX;
  for (const Tensor& t : indices)
    if (is_meta_mask(t)) least = std::min(least, t.numel());
  return empty_tensor(IntList{size_from_data("index", least)}, DType::Int64,
                      Device{DeviceType::Meta, -1});
}

// One index tensor for each dimension of the mask, in self's dimensions from `at` on. `places`
// stands for them on the meta device.
void add_mask(const Tensor& self, const Tensor& mask, const Tensor& places, size_t position,
              std::vector<Tensor>& to) {
  const size_t at = to.size();
  for (int64_t d = 0; d < mask.dim(); ++d)
    check_index(
        static_cast<int64_t>(at) + d < self.dim() && mask.sizes()[d] == self.sizes()[at + d],
        "index(): a mask must have the sizes of the dimensions that it selects; got mask ",
        str(mask.sizes()), " for tensor ", str(self.sizes()), " from dimension ", position);
  if (mask.is_meta()) return to.resize(at + static_cast<size_t>(mask.dim()), places);
  const Tensor found = ops::nonzero(mask);
  for (int64_t d = 0; d < mask.dim(); ++d) to.push_back(ops::select(found, 1, d));
}

std::vector<Tensor> expand_masks(const Tensor& self, std::span<const Tensor> indices) {
  std::vector<Tensor> all;
  Tensor places;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      all.emplace_back();
      continue;
    }
    check_index(is_mask(t) || t.dtype() == DType::Int64 || t.dtype() == DType::Int32,
                "an index tensor must have dtype int64, int32, uint8 or bool; got ",
                name(t.dtype()));
    if (!is_mask(t)) {
      all.push_back(t);
      continue;
    }
    if (is_meta_mask(t) && !places.defined()) places = places_without_data(indices);
    add_mask(self, t, places, all.size(), all);
  }
  check_index(static_cast<int64_t>(all.size()) <= self.dim(),
              "too many indices for tensor of dimension ", self.dim(), " (got ", all.size(), ")");
  all.resize(static_cast<size_t>(self.dim()));
  return all;
}

IntVec common_sizes(std::span<const Tensor> indices) {
  IntVec sizes;
  bool fit = true;
  for (const Tensor& t : indices) {
    if (!t.defined() || !fit) continue;
    const size_t n = std::max(sizes.size(), t.sizes().size());
    for (size_t i = 0; i < std::min(sizes.size(), t.sizes().size()); ++i) {
      const int64_t a = sizes[sizes.size() - 1 - i], b = t.sizes()[t.sizes().size() - 1 - i];
      fit = fit && (a == b || a == 1 || b == 1);
    }
    if (fit)
      sizes = broadcast_sizes(sizes, t.sizes());
    else
      sizes.resize(n);
  }
  if (fit) return sizes;
  std::string shapes;
  for (const Tensor& t : indices)
    if (t.defined()) shapes += (shapes.empty() ? "" : ", ") + std::string(str(t.sizes()));
  throw Error(ErrorKind::Index, "shape mismatch: index tensors must broadcast to one shape; got ",
              shapes);
}

// `t` with strides of zero where it is broadcast to the given sizes.
Tensor expanded(const Tensor& t, IntSpan sizes) {
  IntVec strides(sizes.size());
  const size_t extra = sizes.size() - t.sizes().size();
  for (size_t d = 0; d < t.sizes().size(); ++d)
    strides[d + extra] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

// A call of index or index_put_: which dimensions are indexed, and where they stand in the result.
class Indexing {
 public:
  Indexing(const Tensor& self, std::span<const Tensor> indices)
      : self_(self), indices_(expand_masks(self, indices)), common_(common_sizes(indices_)) {
    place_dims();
    for (size_t d = 0; d < indices_.size(); ++d) {
      const bool hit = indices_[d].defined() && self.sizes()[d] == 0;
      check_index(!hit || std::ranges::find(common_, 0) != common_.end(),
                  "index is out of bounds: a dimension that is indexed has size 0");
    }
  }

  const IntVec& sizes() const { return sizes_; }

  // The tensor's memory in the result's shape: still where it is indexed.
  Tensor still(const Tensor& self) const {
    IntVec strides(sizes_.size());
    for (size_t d = 0, at = 0; d < indices_.size(); ++d) {
      if (indices_[d].defined()) continue;
      if (at == start_) at += common_.size();
      strides[at++] = self.strides()[d];
    }
    return alias_tensor(self, sizes_, strides, self.storage_offset());
  }

  // Byte offsets into the tensor in the result's shape.
  Tensor offsets(const Tensor& self) const {
    std::vector<Tensor> full;
    std::vector<cpu::IndexedDim> dims;
    full.reserve(indices_.size());
    for (size_t d = 0; d < indices_.size(); ++d) {
      if (!indices_[d].defined()) continue;
      full.push_back(expanded(indices_[d], common_));
      dims.push_back(
          {&full.back(), self.sizes()[d], self.strides()[d], static_cast<int64_t>(d), true});
    }
    return in_result(cpu::byte_offsets(dims, self.itemsize()));
  }

  IntVec result_strides() const {
    std::vector<Tensor> inputs{still(self_)};
    for (const Tensor& t : indices_)
      if (t.defined()) inputs.push_back(in_result(expanded(t, common_)));
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : inputs) pointers.push_back(&t);
    return elementwise_strides(sizes_, pointers);
  }

 private:
  // Indexed dimensions that stand together keep their place in the result, else they come first.
  void place_dims() {
    size_t first = indices_.size(), last = 0, count = 0;
    for (size_t d = 0; d < indices_.size(); ++d) {
      if (!indices_[d].defined()) continue;
      first = std::min(first, d);
      last = d;
      ++count;
    }
    check_index(count > 0, "index(): expected at least one index tensor");
    start_ = last - first + 1 == count ? first : 0;
    for (size_t d = 0; d < indices_.size(); ++d)
      if (!indices_[d].defined()) sizes_.push_back(self_.sizes()[d]);
    for (size_t d = 0; d < common_.size(); ++d) sizes_.insert(start_ + d, common_[d]);
  }

  Tensor in_result(const Tensor& t) const {
    IntVec strides(sizes_.size());
    for (size_t d = 0; d < common_.size(); ++d) strides[start_ + d] = t.strides()[d];
    return alias_tensor(t, sizes_, strides, t.storage_offset());
  }

  Tensor self_;
  std::vector<Tensor> indices_;  // one for each dimension, undefined where it is taken whole
  IntVec common_;                // the index tensors' shape
  IntVec sizes_;
  size_t start_ = 0;  // where common_ stands in sizes_
};

bool any_index(std::span<const Tensor> indices) {
  return std::ranges::any_of(indices, [](const Tensor& t) { return t.defined(); });
}

Tensor index(const Tensor& self, std::span<const Tensor> indices) {
  check_cpu(self, "index");
  if (!any_index(indices)) return ops::clone(self);
  const Indexing at(self, indices);
  const Tensor out =
      empty_strided_tensor(at.sizes(), at.result_strides(), self.dtype(), self.device());
  if (out.numel() > 0 && !self.is_meta())
    cpu::gather_elements(out, at.still(self), at.offsets(self));
  return out;
}

// In a dtype that adds: also of float8, which PyTorch accumulates too.
Tensor summable(const Tensor& t) {
  const DType d = comparison_of(t.dtype());
  return d == t.dtype() ? widened(t) : cpu::converted(t, d);
}

void put(const Tensor& self, std::span<const Tensor> indices, const Tensor& values,
         bool accumulate) {
  // Self keeps its sizes, so nobody needs to know how many elements masks select.
  if (self.is_meta() && std::ranges::any_of(indices, is_meta_mask)) return;
  const Indexing at(self, indices);
  const IntSpan v = values.sizes();
  bool fit = v.size() <= at.sizes().size();
  for (size_t d = 0; fit && d < v.size(); ++d) {
    const int64_t wanted = at.sizes()[at.sizes().size() - v.size() + d];
    fit = v[d] == 1 || v[d] == wanted;
  }
  check(fit, "shape mismatch: values must broadcast to the indexed part; got ", str(v), " for ",
        str(at.sizes()));
  if (self.is_meta() || checked_numel(at.sizes()) == 0) return;
  if (!accumulate)
    return cpu::scatter_elements(at.still(self), at.offsets(self),
                                 expanded(apart_from(values, self), at.sizes()));
  const Tensor sum = summable(self);
  cpu::scatter_reduce_elements(at.still(sum), at.offsets(sum),
                               expanded(summable(apart_from(values, self)), at.sizes()),
                               cpu::Reduction::Sum, "index_put_");
  if (!sum.is_same(self)) cpu::copy(self, sum);
}

void index_put_(const Tensor& self, std::span<const Tensor> indices, const Tensor& values,
                bool accumulate) {
  check_cpu(self, "index_put_");
  check(self.dtype() == values.dtype(), "index_put_(): values must have self's dtype, ",
        name(self.dtype()), "; got ", name(values.dtype()));
  if (any_index(indices)) return put(self, indices, values, accumulate);
  if (accumulate)
    ops::add_(self, values);
  else
    ops::copy_(self, values);
}
void index_put_impl_(const Tensor& self, std::span<const Tensor> indices, const Tensor& values,
                     bool accumulate, bool) {
  index_put_(self, indices, values, accumulate);
}
Tensor unsafe_index(const Tensor& self, std::span<const Tensor> indices) {
  return ops::index(self, indices);
}
Tensor unsafe_index_put(const Tensor& self, std::span<const Tensor> indices, const Tensor& values,
                        bool accumulate) {
  return ops::index_put(self, indices, values, accumulate);
}

Tensor index_gradient(Backward& b) {
  return ops::index_put_(ops::new_zeros(b.grad(), b.sizes("self")), b.tensors("indices"), b.grad(),
                         true);
}
Tensor put_self_gradient(Backward& b) {
  if (b.flag("accumulate")) return b.grad();
  return ops::index_put(b.grad(), b.tensors("indices"), ops::new_zeros(b.grad(), b.sizes("values")),
                        false);
}

// --- masks

void check_mask(const Tensor& mask, const char* op) {
  check(mask.dtype() == DType::Bool, op, ": expected BoolTensor for mask");
}

void meta_masked_fill(Meta& m, const Tensor& self, const Tensor& mask, const Value& value) {
  check(mask.dtype() == DType::Bool, "masked_fill_(): mask must be bool; got ", name(mask.dtype()));
  if (value.is_tensor())
    check(value.as_tensor().dim() == 0, "masked_fill_(): value must be 0-dimensional; got ",
          value.as_tensor().dim(), " dimensions");
  m.result(0, broadcast_sizes(self.sizes(), mask.sizes()), self.dtype());
}
void fill_by_mask(const Tensor& self, const Tensor& mask, const Tensor& value, const Tensor& out) {
  const Tensor apart = apart_from(mask, out);
  start_from(self, out);
  cpu::fill_masked(out, apart, value);
}
void masked_fill_scalar(const Tensor& self, const Tensor& mask, const Scalar& value,
                        const Tensor& out) {
  fill_by_mask(self, mask, element(value, out.dtype()), out);
}
void masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value,
                        const Tensor& out) {
  fill_by_mask(self, mask, element(ops::item(value), out.dtype()), out);
}

void meta_masked_select(Meta& m, const Tensor& self, const Tensor& mask) {
  check_mask(mask, "masked_select");
  const int64_t all = checked_numel(broadcast_sizes(mask.sizes(), self.sizes()));
  m.result(0, IntList{size_from_data(m.op_name(), all)}, self.dtype());
}
Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check_mask(mask, "masked_select");
  const IntVec sizes = broadcast_sizes(mask.sizes(), self.sizes());
  const Tensor m = cpu::contiguous(expanded(mask, sizes)),
               from = cpu::contiguous(expanded(self, sizes));
  const int64_t n = cpu::count_nonzero_elements(m);
  const Tensor out = empty_tensor({&n, 1}, self.dtype());
  if (n > 0) cpu::compress(from, m, out);
  return out;
}
Tensor masked_select_gradient(Backward& b) {
  const Tensor mask = b["mask"];
  const IntVec sizes = broadcast_sizes(b.sizes("self"), mask.sizes());
  return ops::masked_scatter(ops::new_zeros(b.grad(), sizes), mask, b.grad());
}

void meta_masked_scatter(Meta& m, const Tensor& self, const Tensor& mask, const Tensor& source) {
  check(self.dtype() == source.dtype(), "masked_scatter_(): source must have self's dtype, ",
        name(self.dtype()), "; got ", name(source.dtype()));
  check(mask.dtype() == DType::Bool, "masked_scatter_(): mask must be bool; got ",
        name(mask.dtype()));
  m.result(0, broadcast_sizes(self.sizes(), mask.sizes()), self.dtype());
}
void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source,
                    const Tensor& out) {
  const Tensor m = cpu::contiguous(expanded(mask, out.sizes())),
               from = cpu::contiguous(apart_from(source, out));
  check(cpu::count_nonzero_elements(m) <= from.numel(),
        "masked_scatter_(): source must have an element for each true one of mask; got ",
        from.numel());
  start_from(self, out);
  if (out.numel() > 0) cpu::spread(out, m, from);
}
Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntSpan sizes) {
  const int64_t total = checked_numel(sizes);
  const Tensor chosen = ops::masked_select(grad, mask);
  const Tensor rest = ops::new_zeros(chosen, {total - chosen.numel()});
  const Tensor parts[] = {chosen, rest};
  return ops::view(ops::cat(parts, 0), sizes);
}

// --- nonzero

void meta_nonzero(Meta& m, const Tensor& self) {
  const int64_t n = size_from_data(m.op_name(), self.numel());
  m.result(0, IntList{n, self.dim()}, DType::Int64, IntList{1, n});
}
Tensor nonzero(const Tensor& self) {
  const Tensor t = cpu::contiguous(self);
  const int64_t n = cpu::count_nonzero_elements(t);
  const Tensor out = empty_strided_tensor(IntList{n, t.dim()}, IntList{1, n}, DType::Int64);
  if (t.dim() > 0) cpu::nonzero_coordinates(t, out);
  return out;
}
std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  // A 0-dim tensor counts as one element.
  return ops::unbind(ops::nonzero(self.dim() == 0 ? ops::unsqueeze(self, 0) : self), 1);
}
Tensor argwhere(const Tensor& self) { return ops::nonzero(self); }

void meta_nonzero_static(Meta& m, const Tensor& self, int64_t size, int64_t) {
  check(size >= 0, "nonzero_static(): size must not be negative; got ", size);
  m.result(0, IntList{size, self.dim()}, DType::Int64);
}
void nonzero_static(const Tensor& self, int64_t, int64_t fill_value, const Tensor& out) {
  cpu::fill(out, fill_value);
  if (self.dim() > 0) cpu::nonzero_coordinates(cpu::contiguous(self), out);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(index_Tensor){
    .schema = "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    .doc =
        "The elements of self that index tensors (long, int, or masks) name, one tensor for each "
        "dimension; None takes a "
        "dimension whole. Index tensors are broadcast; where they do not stand side by side their "
        "dimensions come first.",
    .forms = hidden,
    .cpu = typed_kernel<index>,
    .any = typed_kernel<index>,
    .derivatives = {vjp("self", index_gradient, saves("indices"))},
    .batch = batch::index,
};
OP(_unsafe_index_Tensor){
    .schema = "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    .doc = "As index, for indices known to lie inside; they are checked all the same.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<unsafe_index>,
};
OP(index_put_){
    .schema =
        "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
        "Tensor(a!)",
    .doc =
        "Writes values, broadcast, to the elements of self that index tensors name; with "
        "accumulate it adds. Where "
        "elements are named several times without accumulate, the last value stays.",
    .forms = function_method | functional,
    .any = typed_kernel<index_put_>,
    .derivatives =
        {
            vjp("self", put_self_gradient, saves("indices")),
            vjp(
                "values", [](Backward& b) { return ops::index(b.grad(), b.tensors("indices")); },
                saves("indices")),
        },
    .batch = batch::index_put,
};
OP(_index_put_impl_){
    .schema =
        "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool "
        "accumulate=False, "
        "bool unsafe=False) -> Tensor(a!)",
    .doc = "As index_put_; `unsafe` is accepted and indices are checked all the same.",
    .forms = hidden,
    .any = typed_kernel<index_put_impl_>,
    .derivatives =
        {
            vjp("self", put_self_gradient, saves("indices")),
            vjp(
                "values", [](Backward& b) { return ops::index(b.grad(), b.tensors("indices")); },
                saves("indices")),
        },
    .batch = batch::index_put,
};
OP(_unsafe_index_put){
    .schema =
        "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) "
        "-> Tensor",
    .doc = "A copy of self with values written as by index_put_.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<unsafe_index_put>,
};

OP(masked_fill_Scalar){
    .schema = "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    .doc = "Self with a number where the bool mask, broadcast, is true.",
    .forms = function | method | inplace,
    .meta = typed_meta<meta_masked_fill>,
    .cpu = typed_kernel<masked_fill_scalar>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::masked_fill(b.grad(), b["mask"], 0); },
        saves("mask"))},
    .node = "MaskedFillBackward0",
    .batch = batch::pointwise,
};
OP(masked_fill_Tensor){
    .schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    .doc = "Self with the one element of a 0-dim tensor where the bool mask, broadcast, is true.",
    .forms = function | method | inplace,
    .flags = cross_device | runs_when_called,
    .meta = typed_meta<meta_masked_fill>,
    .cpu = typed_kernel<masked_fill_tensor>,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return ops::masked_fill(b.grad(), b["mask"], 0); },
                saves("mask")),
            vjp(
                "value",
                [](Backward& b) {
                  return ops::sum(ops::masked_fill(b.grad(), ops::logical_not(b["mask"]), 0));
                },
                saves("mask")),
        },
    .node = "MaskedFillBackward1",
    .hole = "vmap: samples are done one by one",
};
OP(masked_select){
    .schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
    .doc = "The elements of self where the bool mask is true, both broadcast, as a 1-d tensor.",
    .forms = function | method | out,
    .flags = shape_from_data | exact_out,
    .meta = typed_meta<meta_masked_select>,
    .cpu = typed_kernel<masked_select>,
    .derivatives = {vjp("self", masked_select_gradient, saves("mask"))},
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(masked_scatter){
    .schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    .doc = "Self with elements of source, in order, where the bool mask, broadcast, is true.",
    .forms = function | method | inplace,
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_masked_scatter>,
    .cpu = typed_kernel<masked_scatter>,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return ops::masked_fill(b.grad(), b["mask"], 0); },
                saves("mask")),
            vjp(
                "source",
                [](Backward& b) {
                  return ops::masked_scatter_backward(b.grad(), b["mask"], b.sizes("source"));
                },
                saves("mask")),
        },
    .hole = "vmap: samples are done one by one",
};
OP(masked_scatter_backward){
    .schema = "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
    .doc = "Gradient of masked_scatter with respect to its source of the given sizes.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<masked_scatter_backward>,
};

OP(nonzero){
    .schema = "nonzero(Tensor self) -> Tensor",
    .doc = "Coordinates of the elements that are not zero: int64, one row for each, in order.",
    .forms = function | method | out,
    .flags = shape_from_data | exact_out,
    .meta = typed_meta<meta_nonzero>,
    .cpu = typed_kernel<nonzero>,
    .not_differentiable = names("self", "result"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(nonzero_numpy){
    .schema = "nonzero_numpy(Tensor self) -> Tensor[]",
    .doc = "Coordinates of the elements that are not zero, one tensor for each dimension.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<nonzero_numpy>,
};
OP(where){
    .schema = "where(Tensor condition) -> Tensor[]",
    .doc = "Coordinates of the elements that are not zero, one tensor for each dimension.",
    .composite = Composite::Implicit,
    .any = typed_kernel<nonzero_numpy>,
};
OP(argwhere){
    .schema = "argwhere(Tensor self) -> Tensor",
    .doc = "Coordinates of the elements that are not zero: int64, one row for each.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<argwhere>,
};
OP(nonzero_static){
    .schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    .doc =
        "As nonzero with a fixed number of rows: the first ones, rows of fill_value where there "
        "are fewer.",
    .forms = function | method | out,
    .flags = exact_out,
    .meta = typed_meta<meta_nonzero_static>,
    .cpu = typed_kernel<nonzero_static>,
    .not_differentiable = names("self", "result"),
    .hole = "vmap: samples are done one by one",
};
