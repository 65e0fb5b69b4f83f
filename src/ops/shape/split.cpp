// Parts of a tensor along a dimension, as views.
#include "ops/shape/split.h"

#include <algorithm>

#include "dispatch/out_dtype.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/meta_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"
#include "ops/shape/view_geometry.h"

namespace facula {
namespace {

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  check(self.dim() > 0, "narrow(): self must have a dimension; got a 0-dim tensor");
  check(length >= 0, "narrow(): length must not be negative; got ", length);
  const int64_t d = wrap_dim(dim, self.dim()), n = self.sizes()[d];
  check_index(start >= -n && start <= n, "narrow(): start out of range: expected -", n, " to ", n,
              "; got ", start);
  const int64_t at = start < 0 ? start + n : start;
  check(length <= n - at, "start (", at, ") + length (", length, ") exceeds dimension size (", n,
        ").");
  return ops::slice(self, d, at, at + length, 1);
}
Tensor reshape_alias(const Tensor& self, IntSpan size, IntSpan stride) {
  const IntVec sizes = geometry::infer_size(size, self.numel());
  const auto fitting = geometry::view_strides(self.sizes(), self.strides(), sizes);
  check(fitting && same_sizes(*fitting, stride),
        "_reshape_alias(): stride must be that of self's memory seen in the given size; got ",
        str(stride), " for size ", str(size), " of a tensor of sizes ", str(self.sizes()),
        " and strides ", str(self.strides()));
  return alias_tensor(self, sizes, stride, self.storage_offset());
}

Tensor narrow_tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  check(start.dim() == 0 && is_integral(start.dtype(), false),
        "narrow(): start must be a 0-dim tensor of an integer type");
  return narrow(self, dim, ops::item(start).to<int64_t>(), length);
}
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  check(dim < self.dim(), "narrow_copy(): expected a dim below ", self.dim(), "; got ", dim);
  return ops::clone(narrow(self, dim, start, length), MemoryFormat::Contiguous);
}
Tensor narrow_gradient(Backward& b) {
  const IntSpan sizes = b.sizes("self");
  const int64_t d = wrap_dim(b.integer("dim"), static_cast<int64_t>(sizes.size()));
  const int64_t start = b.integer("start"), first = start < 0 ? start + sizes[d] : start;
  return ops::slice_backward(b.grad(), sizes, d, first, first + b.integer("length"), 1);
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  check(self.dim() > 0, "chunk(): self must have a dimension; got a 0-dim tensor");
  check(chunks > 0, "chunk(): chunks must be positive; got ", chunks);
  const int64_t n = self.size(wrap_dim(dim, self.dim())), size = n / chunks + (n % chunks != 0);
  if (size > 0) return ops::split(self, size, dim);
  // An empty dimension still gives the number of chunks asked for.
  geometry::check_parts_fit(chunks, "chunk");
  return ops::split_with_sizes(self, IntVec(static_cast<size_t>(chunks)), dim);
}
std::vector<Tensor> split_sizes(const Tensor& self, IntSpan split_size, int64_t dim) {
  return ops::split_with_sizes(self, split_size, dim);
}

// --- tensor_split: n + 1 parts of nearly equal size first, or cut at indices

std::vector<Tensor> split_evenly(const Tensor& self, int64_t sections, int64_t dim) {
  check(self.dim() > 0, "tensor_split(): self must have a dimension; got a 0-dim tensor");
  const int64_t d = wrap_dim(dim, self.dim()), n = self.sizes()[d];
  check(sections > 0, "tensor_split(): sections must be positive; got ", sections);
  geometry::check_parts_fit(sections, "tensor_split");
  const int64_t least = n / sections, longer = n % sections;
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = least + (i < longer);
    parts.push_back(ops::slice(self, d, at, at + length, 1));
    at += length;
  }
  return parts;
}
std::vector<Tensor> split_at(const Tensor& self, IntSpan indices, int64_t dim) {
  check(self.dim() > 0, "tensor_split(): self must have a dimension; got a 0-dim tensor");
  const int64_t d = wrap_dim(dim, self.dim());
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (int64_t i : indices) {
    parts.push_back(ops::slice(self, d, at, i, 1));
    at = i;
  }
  parts.push_back(ops::slice(self, d, at, self.sizes()[d], 1));
  return parts;
}
std::vector<Tensor> split_by_tensor(const Tensor& self, const Tensor& where, int64_t dim) {
  check(self.dim() > 0, "tensor_split(): self must have a dimension; got a 0-dim tensor");
  check(where.device().is_cpu(),
        "tensor_split(): tensor_indices_or_sections must be on the CPU; got ", str(where.device()));
  check(where.dtype() == DType::Int64,
        "tensor_split(): tensor_indices_or_sections must have dtype int64; got ",
        name(where.dtype()));
  check(where.dim() <= 1,
        "tensor_split(): tensor_indices_or_sections must have at most 1 dimension; got ",
        where.dim());
  if (where.dim() == 0) return split_evenly(self, ops::item(where).to<int64_t>(), dim);
  IntVec indices;
  for (int64_t i = 0; i < where.numel(); ++i)
    indices.push_back(where.data<int64_t>()[i * where.strides()[0]]);
  return split_at(self, indices, dim);
}

void check_parts(const char* op, const Tensor& self, int64_t dim, int64_t sections) {
  check(sections != 0 && self.sizes()[dim] % sections == 0, op,
        "(): sections must divide the size of dimension ", dim, ", ", self.sizes()[dim], "; got ",
        sections);
}
int64_t hsplit_dim(const Tensor& self) {
  check(self.dim() >= 1, "hsplit(): self must have at least 1 dimension; got ", self.dim());
  return self.dim() == 1 ? 0 : 1;
}
int64_t vsplit_dim(const Tensor& self) {
  check(self.dim() >= 2, "vsplit(): self must have at least 2 dimensions; got ", self.dim());
  return 0;
}
int64_t dsplit_dim(const Tensor& self) {
  check(self.dim() >= 3, "dsplit(): self must have at least 3 dimensions; got ", self.dim());
  return 2;
}
std::vector<Tensor> hsplit(const Tensor& self, int64_t sections) {
  const int64_t d = hsplit_dim(self);
  check_parts("hsplit", self, d, sections);
  return split_evenly(self, sections, d);
}
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections) {
  const int64_t d = vsplit_dim(self);
  check_parts("vsplit", self, d, sections);
  return split_evenly(self, sections, d);
}
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections) {
  const int64_t d = dsplit_dim(self);
  check_parts("dsplit", self, d, sections);
  return split_evenly(self, sections, d);
}
std::vector<Tensor> hsplit_at(const Tensor& self, IntSpan indices) {
  return split_at(self, indices, hsplit_dim(self));
}
std::vector<Tensor> vsplit_at(const Tensor& self, IntSpan indices) {
  return split_at(self, indices, vsplit_dim(self));
}
std::vector<Tensor> dsplit_at(const Tensor& self, IntSpan indices) {
  return split_at(self, indices, dsplit_dim(self));
}

// --- parts that do not count as views

Tensor unmarked(const Tensor& view) { return alias_tensor(view); }
std::vector<Tensor> unmarked(const std::vector<Tensor>& views) {
  std::vector<Tensor> all;
  for (const Tensor& t : views) all.push_back(unmarked(t));
  return all;
}
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return unmarked(ops::split(self, split_size, dim));
}
std::vector<Tensor> unsafe_split_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return unmarked(ops::split_with_sizes(self, split_sizes, dim));
}
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  check(self.dim() > 0, "chunk(): self must have a dimension; got a 0-dim tensor");
  check(chunks > 0, "chunk(): chunks must be positive; got ", chunks);
  const int64_t n = self.size(wrap_dim(dim, self.dim())), size = n / chunks + (n % chunks != 0);
  if (size == 0) geometry::check_parts_fit(chunks, "chunk");
  if (size == 0)
    return ops::unsafe_split_with_sizes(self, IntVec(static_cast<size_t>(chunks)), dim);
  return ops::unsafe_split(self, size, dim);
}

// The gradients of consecutive parts, joined; zeros for those without one.
Tensor joined(Backward& b, const IntVec& lengths) {
  const IntSpan whole = b.sizes("self");
  const int64_t d = wrap_dim(b.integer("dim"), static_cast<int64_t>(whole.size()));
  Tensor like;
  for (size_t i = 0; i < lengths.size() && !like.defined(); ++i) like = b.grad(static_cast<int>(i));
  if (!like.defined()) return like;
  std::vector<Tensor> parts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    IntVec sizes(whole);
    sizes[d] = lengths[i];
    const Tensor& g = b.grad(static_cast<int>(i));
    parts.push_back(g.defined() ? g : ops::new_zeros(like, sizes));
  }
  return ops::cat(parts, d);
}
Tensor split_gradient(Backward& b) {
  const IntSpan whole = b.sizes("self");
  const int64_t n = whole[wrap_dim(b.integer("dim"), static_cast<int64_t>(whole.size()))],
                size = b.integer("split_size");
  IntVec lengths;
  for (int64_t at = 0; at < n; at += size) lengths.push_back(std::min(size, n - at));
  if (lengths.empty()) lengths.push_back(0);
  return joined(b, lengths);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(narrow){
    .schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    .doc = "A view of `length` indices of a dimension from `start` on.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<narrow>,
    .copy_form = "narrow_copy",
};
OP(narrow_Tensor){
    .schema = "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
    .doc =
        "A view of `length` indices of a dimension from a start that a 0-dim integer tensor holds.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<narrow_tensor>,
};
OP(narrow_copy){
    .schema = "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
    .doc = "A copy of `length` indices of a dimension from `start` on.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<narrow_copy>,
    .derivatives = {vjp("self", narrow_gradient)},
};
OP(chunk){
    .schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
    .doc =
        "Views of at most `chunks` consecutive parts of a dimension, all but the last of one size.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<chunk>,
};
OP(split_sizes){
    .schema = "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
    .doc = "Views of consecutive parts of a dimension, of the given sizes.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<split_sizes>,
};
OP(tensor_split_sections){
    .schema =
        "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
    .doc =
        "Views of consecutive parts of a dimension whose sizes differ by one at most, longer ones "
        "first.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<split_evenly>,
};
OP(tensor_split_indices){
    .schema =
        "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
    .doc = "Views of the parts of a dimension between the given indices.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<split_at>,
};
OP(tensor_split_tensor_indices_or_sections){
    .schema =
        "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor "
        "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
    .doc =
        "Views of parts of a dimension: a 0-dim int64 tensor gives their number, a 1-d one where "
        "to cut.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<split_by_tensor>,
};
OP(hsplit_int){
    .schema = "hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
    .doc = "Views of equal parts along the columns (the only dimension of a 1-d tensor).",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<hsplit>,
};
OP(hsplit_array){
    .schema = "hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
    .doc = "Views of the parts between the given columns.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<hsplit_at>,
};
OP(vsplit_int){
    .schema = "vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
    .doc = "Views of equal parts along the rows.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<vsplit>,
};
OP(vsplit_array){
    .schema = "vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
    .doc = "Views of the parts between the given rows.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<vsplit_at>,
};
OP(dsplit_int){
    .schema = "dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
    .doc = "Views of equal parts along the third dimension.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<dsplit>,
};
OP(dsplit_array){
    .schema = "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
    .doc = "Views of the parts of the third dimension between the given indices.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<dsplit_at>,
};
OP(unsafe_split_Tensor){
    .schema = "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    .doc =
        "As split; the parts do not count as views, so in-place changes of one are not seen by "
        "autograd in the others.",
    .forms = function_method,
    .any = typed_kernel<unsafe_split>,
    .derivatives = {vjp("self", split_gradient)},
    .batch = batch::dims,
};
OP(unsafe_split_with_sizes){
    .schema = "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    .doc = "As split_with_sizes; the parts do not count as views.",
    .forms = function_method,
    .any = typed_kernel<unsafe_split_sizes>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return joined(b, IntVec(b.ints("split_sizes"))); })},
    .batch = batch::dims,
};
OP(unsafe_chunk){
    .schema = "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    .doc = "As chunk; the parts do not count as views.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<unsafe_chunk>,
};
OP(_reshape_alias){
    .schema = "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
    .doc = "The view that reshape() found: self's memory in sizes and strides that fit it.",
    .forms = function,
    .flags = handles_conj,
    .any = typed_kernel<reshape_alias>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return ops::reshape(b.grad(), b.sizes("self")); })},
    .copy_form = "view_copy",
};
