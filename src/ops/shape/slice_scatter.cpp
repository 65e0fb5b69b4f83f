// Copies of a tensor with one part replaced: an index, a slice or a strided view of it.
#include "ops/shape/slice_scatter.h"

#include <algorithm>

#include "dispatch/batch.h"
#include "dispatch/out_dtype.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"
#include "ops/shape/view_geometry.h"

namespace facula {
namespace {

using geometry::copy_of_memory;

void replace(const Tensor& part, const Tensor& src) {
  check(same_sizes(part.sizes(), src.sizes()),
        "src must have the shape of the part of self that it replaces, ", str(part.sizes()),
        "; got ", str(src.sizes()));
  ops::copy_(part, src);
}

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor t = copy_of_memory(self);
  const Tensor part = ops::select(t, dim, index);
  replace(part, src);
  return t;
}
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  const Tensor t = copy_of_memory(self);
  const Tensor part = ops::slice(t, dim, start, end, step);
  replace(part, src);
  return t;
}
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntSpan size, IntSpan stride,
                          std::optional<int64_t> offset) {
  // A copy of the memory up to the end of both: the view may lie outside of self's elements.
  const int64_t at = offset.value_or(self.storage_offset());
  const int64_t reach = std::max(self.storage_offset() + extent(self.sizes(), self.strides()),
                                 at + extent(size, stride));
  const Tensor memory = ops::new_zeros(self, {reach});
  const Tensor t = ops::as_strided(memory, self.sizes(), self.strides(), self.storage_offset());
  ops::copy_(t, self);
  const Tensor part = ops::as_strided(memory, size, stride, at);
  replace(part, src);
  return t;
}

std::optional<int64_t> maybe(Backward& b, Name n) {
  return b.is_none(n) ? std::nullopt : std::optional<int64_t>(b.integer(n));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(select_scatter){
    .schema = "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    .doc = "A copy of self with src in the place of one index of a dimension.",
    .forms = function_method | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<select_scatter>,
    .derivatives =
        {
            vjp("self",
                [](Backward& b) {
                  return ops::select_scatter(b.grad(), ops::new_zeros(b.grad(), b.sizes("src")),
                                             b.integer("dim"), b.integer("index"));
                }),
            vjp("src",
                [](Backward& b) {
                  return ops::select(b.grad(), b.integer("dim"), b.integer("index"));
                }),
        },
    .batch = batch::dims,
};
OP(slice_scatter){
    .schema =
        "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1) -> Tensor",
    .doc = "A copy of self with src in the place of a slice of a dimension.",
    .forms = function_method | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<slice_scatter>,
    .derivatives =
        {
            vjp("self",
                [](Backward& b) {
                  return ops::slice_scatter(b.grad(), ops::new_zeros(b.grad(), b.sizes("src")),
                                            b.integer("dim"), maybe(b, "start"), maybe(b, "end"),
                                            b.integer("step"));
                }),
            vjp("src",
                [](Backward& b) {
                  return ops::slice(b.grad(), b.integer("dim"), maybe(b, "start"), maybe(b, "end"),
                                    b.integer("step"));
                }),
        },
    .batch = batch::dims,
};
OP(as_strided_scatter){
    .schema =
        "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None) -> Tensor",
    .doc = "A copy of self with src in the place of a strided view.",
    .forms = function_method | out,
    .composite = Composite::Explicit,
    .flags = reads_strides,
    .any = typed_kernel<as_strided_scatter>,
    .derivatives =
        {
            // PyTorch gives self the gradient of what was replaced and zeros elsewhere; so do we.
            vjp("self",
                [](Backward& b) {
                  const Tensor grad = ops::clone(b.grad(), MemoryFormat::Contiguous);
                  const Tensor replaced = ops::as_strided(grad, b.ints("size"), b.ints("stride"),
                                                          maybe(b, "storage_offset"));
                  return ops::as_strided_scatter(ops::zeros_like(grad), replaced, b.ints("size"),
                                                 b.ints("stride"), maybe(b, "storage_offset"));
                }),
            vjp("src",
                [](Backward& b) {
                  return ops::clone(ops::as_strided(ops::clone(b.grad(), MemoryFormat::Contiguous),
                                                    b.ints("size"), b.ints("stride"),
                                                    maybe(b, "storage_offset")));
                }),
        },
    // A sample's geometry may reach beyond it, which the whole batch cannot show.
    .batch = [](Batch& b) { b.loop(); },
};
