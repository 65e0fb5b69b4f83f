// Tensors joined along a dimension they have.
#include "ops/shape/cat.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/index/indexed.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// PyTorch lets an empty 1-d tensor stand beside tensors of any shape.
bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

const Tensor* first_real(std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (!skipped(t)) return &t;
  return nullptr;
}

void check_fits(const Tensor& first, const Tensor& t, int64_t dim, size_t index) {
  check(t.dim() == first.dim(), "cat(): tensors must have as many dimensions; got ", first.dim(),
        " and ", t.dim(), " at ", index);
  for (int64_t d = 0; d < t.dim(); ++d)
    check(d == dim || t.sizes()[d] == first.sizes()[d],
          "cat(): Sizes of tensors must match except in dimension ", dim, "; got ",
          first.sizes()[d], " and, at ", index, ", ", t.sizes()[d]);
}

void meta_cat(Meta& m, std::span<const Tensor> tensors, int64_t dim) {
  check_value(!tensors.empty(), "cat(): expected a non-empty list of Tensors");
  for (size_t i = 0; i < tensors.size(); ++i)
    check(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i,
          ") cannot be concatenated");
  const DType dtype = result_type({m.call.args, 1});
  indexed::check_join(m, tensors, dtype);
  const Tensor* first = first_real(tensors);
  if (!first) return m.result(0, tensors[0].sizes(), dtype);
  const int64_t d = wrap_dim(dim, first->dim());
  IntVec sizes(first->sizes());
  sizes[d] = 0;
  MemoryFormat format = suggested_format(*first);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (skipped(tensors[i])) continue;
    check_fits(*first, tensors[i], d, i);
    sizes[d] += tensors[i].sizes()[d];
    if (suggested_format(tensors[i]) != format) format = MemoryFormat::Contiguous;
  }
  if (format == MemoryFormat::Contiguous) return m.result(0, sizes, dtype);
  m.result_format(0, sizes, dtype, format);
}

// Small tensors that lie in memory as they are joined: runs of bytes, without a plan for each.
bool joins_bytes(std::span<const Tensor> tensors, const Tensor& out) {
  constexpr int64_t most_bytes = 65536;
  const auto fits = [&](const Tensor& t) {
    return t.dtype() == out.dtype() && t.is_contiguous() && !t->conj && !t->neg;
  };
  return out.is_contiguous() && out.numel() * static_cast<int64_t>(out.itemsize()) <= most_bytes &&
         std::ranges::all_of(tensors, fits);
}

void join_bytes(std::span<const Tensor> tensors, int64_t d, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t size = static_cast<int64_t>(out.itemsize());
  int64_t outer = 1;
  for (int64_t k = 0; k < d; ++k) outer *= out.sizes()[k];
  const int64_t step = out.numel() / outer * size;
  char* to = out.data<char>();
  for (const Tensor& t : tensors) {
    const int64_t run = t.numel() / outer * size;
    if (run == 0) continue;
    const char* from = t.data<char>();
    for (int64_t i = 0; i < outer; ++i)
      std::memcpy(to + i * step, from + i * run, static_cast<size_t>(run));
    to += run;
  }
}

void cat(std::span<const Tensor> tensors, int64_t dim, const Tensor& out) {
  const Tensor* first = first_real(tensors);
  if (!first) return;
  const int64_t d = wrap_dim(dim, first->dim());
  if (joins_bytes(tensors, out)) return join_bytes(tensors, d, out);
  IntVec sizes(out.sizes());
  int64_t offset = out.storage_offset();
  for (const Tensor& t : tensors) {
    if (skipped(t)) continue;
    sizes[d] = t.sizes()[d];
    cpu::copy(alias_tensor(out, sizes, out.strides(), offset), t);
    offset += sizes[d] * out.strides()[d];
  }
}

void cat_gradient(Backward& b) {
  if (!b.grad().defined()) return;
  const std::vector<IntVec> sizes = b.list_sizes("tensors");
  const int64_t d = wrap_dim(b.integer("dim"), b.grad().dim());
  std::vector<Tensor> grads;
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool skip = sizes[i].size() == 1 && sizes[i][0] == 0;
    const int64_t n = skip ? 0 : sizes[i][d];
    if (skip)
      grads.push_back(ops::new_zeros(b.grad(), {0}));
    else
      grads.push_back(b.needs("tensors", i) ? ops::slice(b.grad(), d, at, at + n, 1) : Tensor());
    at += n;
  }
  b.set("tensors", std::move(grads));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(cat){
    .schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
    .doc = "Tensors joined along a dimension.",
    .forms = function | out,
    .aliases = "concat,concatenate",
    .autocast = Autocast::Promote,
    .meta = typed_meta<meta_cat>,
    .cpu = typed_kernel<cat>,
    .derivatives = {vjp(names("tensors"), cat_gradient)},
    .batch = batch::list_dims,
};
