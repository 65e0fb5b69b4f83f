// Between strided and sparse layouts.
#include "ops/sparse/conversion.h"

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/sparse/indices.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/comparison.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/sparse/accessors.h"
#include "ops/sparse/compressed.h"
#include "ops/sparse/coo.h"
#include "ops/sparse/coo_tensor.h"
#include "ops/sparse/layouts.h"

namespace facula {
namespace {

using namespace sparse;
using OptionalDType = std::optional<DType>;
using OptionalLayout = std::optional<Layout>;
using OptionalInt = std::optional<int64_t>;
using Flag = std::optional<bool>;

// --- to strided

Tensor dense_of_coo(const Tensor& t) {
  const Coo& c = coo(t);
  const IntSpan outer = sparse_sizes(t);
  const int64_t cells = checked_numel(outer);
  return ops::reshape(summed_by_group(c.values, flat_positions(t), cells), t.sizes());
}

Tensor to_dense_kernel(const Tensor& self, OptionalDType dtype, Flag) {
  check(!is_strided(self), "_to_dense(): expected a sparse tensor; got a strided one");
  const Tensor dense = is_coo(self) ? dense_of_coo(self) : dense_of_compressed(self);
  return dtype ? ops::to(dense, *dtype) : dense;
}

Tensor to_dense(const Tensor& self, OptionalDType dtype, Flag masked_grad) {
  if (is_strided(self)) return dtype ? ops::to(self, *dtype) : self;
  return ops::_to_dense(self, dtype, masked_grad);
}

Tensor to_dense_gradient(Backward& b) {
  Tensor grad = b.grad();
  if (grad.dtype() != b.dtype("self")) grad = ops::to(grad, b.dtype("self"));
  const bool masked = b.is_none("masked_grad") || b.flag("masked_grad");
  const Tensor self = b["self"];
  if (masked) return ops::sparse_mask(grad, is_coo(self) ? ops::coalesce(self) : self);
  return grad;
}

// --- to sparse_coo

Tensor coo_of_dense(const Tensor& self, int64_t sparse_dim) {
  const int64_t dims = self.dim();
  check(sparse_dim > 0 || dims == 0,
        "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0");
  check(sparse_dim >= 0 && sparse_dim <= dims,
        "dense_to_sparse: sparse_dim argument must be in [0,", dims, "] range, but ", sparse_dim,
        " is given");
  const IntSpan outer = self.sizes().first(static_cast<size_t>(sparse_dim)),
                inner = self.sizes().subspan(static_cast<size_t>(sparse_dim));
  const int64_t cells = checked_numel(outer);
  const Tensor rows = ops::reshape(self, joined(cells, inner));
  Tensor kept = ops::ne(rows, 0);
  if (!inner.empty()) kept = ops::any(ops::reshape(kept, IntVec{cells, checked_numel(inner)}), 1);
  const Tensor flat = ops::reshape(ops::nonzero(kept), IntVec(1, -1));
  return coo_tensor(self.sizes(), cpu::sparse::positions_of(ops::contiguous(flat), outer),
                    ops::index_select(rows, 0, flat), true);
}

Tensor to_coo_of(const Tensor& self, int64_t sparse_dim) {
  if (is_coo(self)) {
    check(sparse_dim == sparse_dims(coo(self)),
          "to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
          "!=self.sparse_dim() is not supported");
    return self;
  }
  if (is_compressed(self)) {
    check(sparse_dim == 2, "sparse_compressed_to_sparse: conversion from ",
          backend_name(self->layout), " to Sparse with sparse_dim argument !=2 is not supported");
    return coo_of_compressed(self);
  }
  return coo_of_dense(self, sparse_dim);
}

struct Wanted {
  Layout layout;
  IntSpan blocksize;
  OptionalInt dense_dim;
};

void check_wanted(const Tensor& self, const Wanted& w) {
  const bool blocks = in_blocks(w.layout);
  check(w.layout == Layout::Sparse || is_compressed_layout(w.layout) || w.layout == Layout::Strided,
        "to_sparse: expected a sparse layout; got ", layout_name(w.layout));
  check(w.blocksize.empty() || blocks, "to_sparse: conversion from ", backend_name(self->layout),
        " to ", backend_name(w.layout), " does not use the specified blocksize ", str(w.blocksize));
  check(!blocks || w.blocksize.size() == 2, "to_sparse: conversion to ", backend_name(w.layout),
        " needs a blocksize of two numbers");
  check(!w.dense_dim || is_strided(self), "to_sparse: conversion from ", backend_name(self->layout),
        " to ", backend_name(w.layout), " does not use the specified dense_dim");
  if (w.dense_dim)
    check(*w.dense_dim >= 0 && *w.dense_dim <= self.dim(),
          "to_sparse: dense_dim must be from 0 to ", self.dim(), "; got ", *w.dense_dim);
}

Tensor converted(const Tensor& self, const Wanted& w) {
  check_wanted(self, w);
  if (w.layout == Layout::Sparse) {
    const int64_t dims = is_strided(self) ? self.dim() - w.dense_dim.value_or(0)
                         : is_coo(self)   ? sparse_dims(coo(self))
                                          : 2;
    return to_coo_of(self, dims);
  }
  return compressed_of(self, w.layout, w.blocksize, w.dense_dim.value_or(0));
}

// A tensor of its own for the node of the conversion.
Tensor apart(const Tensor& t, const Tensor& self) {
  if (!t.is_same(self)) return t;
  return with_values(t, is_coo(t) ? coo(t).values : compressed(t).values);
}

Tensor to_sparse_dim_kernel(const Tensor& self, int64_t sparse_dim) {
  return apart(to_coo_of(self, sparse_dim), self);
}
Tensor to_sparse_kernel(const Tensor& self, OptionalLayout layout, IntSpan blocksize,
                        OptionalInt dense_dim) {
  return apart(converted(self, {layout.value_or(Layout::Sparse), blocksize, dense_dim}), self);
}
// Self stays itself where it has the layout already.
Tensor to_sparse_dim(const Tensor& self, int64_t sparse_dim) {
  if (is_coo(self)) return to_coo_of(self, sparse_dim);
  return ops::_to_sparse(self, sparse_dim);
}
bool has_blocksize(const Tensor& t, IntSpan blocksize) {
  if (!in_blocks(t->layout) || blocksize.empty()) return !in_blocks(t->layout);
  const Compressed& c = compressed(t);
  const auto batch = static_cast<size_t>(c.compressed.dim() - 1);
  return same_sizes(c.values.sizes().subspan(batch + 1, 2), blocksize);
}
Tensor to_sparse(const Tensor& self, OptionalLayout layout, IntSpan blocksize,
                 OptionalInt dense_dim) {
  const Layout wanted = layout.value_or(Layout::Sparse);
  if (wanted == Layout::Strided) return ops::to_dense(self);
  if (self->layout == wanted && !dense_dim && has_blocksize(self, blocksize)) {
    check_wanted(self, {wanted, blocksize, dense_dim});
    return self;
  }
  const std::optional<IntList> block =
      blocksize.empty() ? std::optional<IntList>() : IntList(blocksize);
  return ops::_to_sparse(self, layout, block, dense_dim);
}
Tensor to_coo(const Tensor& self) { return ops::to_sparse(self); }
template <Layout L>
Tensor to_compressed(const Tensor& self, OptionalInt dense_dim) {
  return ops::to_sparse(self, L, std::nullopt, dense_dim);
}
template <Layout L>
Tensor to_blocks(const Tensor& self, IntSpan blocksize, OptionalInt dense_dim) {
  check(blocksize.size() == 2, "to_sparse: expected a blocksize of two numbers; got ",
        str(blocksize));
  return ops::to_sparse(self, L, IntList(blocksize), dense_dim);
}

// Back: in the layout that self has.
Tensor to_sparse_gradient(Backward& b) {
  const Tensor self = b["self"];
  if (is_strided(self)) return ops::to_dense(b.grad());
  if (in_blocks(self->layout)) {
    const Compressed& c = compressed(self);
    const auto batch = static_cast<size_t>(c.compressed.dim() - 1);
    return ops::to_sparse(ops::to_dense(b.grad()), self->layout,
                          IntList(c.values.sizes().subspan(batch + 1, 2)));
  }
  if (b.grad()->layout == self->layout) return b.grad();
  return ops::to_sparse(b.grad(), self->layout);
}

// --- sparse_mask

Tensor mask_coo(const Tensor& self, const Tensor& mask) {
  check(is_coo(self) || is_strided(self),
        "sparse_mask(): expected self to be strided or sparse; got ", layout_name(self->layout));
  check(same_sizes(self.sizes(), mask.sizes()), "sparse_mask(): operands have incompatible sizes; ",
        "self has size ", str(self.sizes()), " but mask has size ", str(mask.sizes()));
  return with_values(mask, sparse::values_at(self, coo(mask).indices));
}

Tensor sparse_mask_kernel(const Tensor& self, const Tensor& mask) {
  check(!is_strided(mask), "sparse_mask(): expected mask to be sparse; got a strided tensor");
  if (is_coo(mask)) return mask_coo(self, mask);
  return mask_compressed(self, mask);
}
Tensor mask_gradient(Backward& b) {
  const Tensor self = b["self"], masked = ops::to_dense(b.grad());
  if (is_strided(self)) return masked;
  return ops::sparse_mask(masked, self);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(to_dense){
    .schema = "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    .doc =
        "The strided tensor with the same values; self if it is strided. With masked_grad, which "
        "is the default, the gradient of a sparse tensor has its positions alone.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object,
    .any = typed_kernel<to_dense>,
};
OP(_to_dense){
    .schema = "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
    .doc = "The strided tensor with the values of a sparse one.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<to_dense_kernel>,
    .derivatives = {vjp("self", to_dense_gradient, saves("self"))},
    .node = "ToDenseBackward0",
    .hole = "batch: transforms do not take sparse tensors",
};
OP(to_sparse_sparse_dim){
    .schema = "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    .doc = "A sparse_coo tensor whose first sparse_dim dimensions are sparse.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object,
    .any = typed_kernel<to_sparse_dim>,
};
OP(to_sparse){
    .schema =
        "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? "
        "dense_dim=None) -> Tensor",
    .doc =
        "The tensor in a sparse layout, sparse_coo by default: zeros are left out. Self if it has "
        "that layout.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object,
    .any = typed_kernel<to_sparse>,
};
OP(to_sparse_coo){
    .schema = "to_sparse_coo(Tensor self) -> Tensor",
    .doc = "As to_sparse, to layout sparse_coo.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<to_coo>,
};
OP(to_sparse_csr){
    .schema = "to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor",
    .doc = "As to_sparse, to layout sparse_csr: the last two sparse dimensions are the matrix.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<to_compressed<Layout::SparseCsr>>,
};
OP(to_sparse_csc){
    .schema = "to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor",
    .doc = "As to_sparse, to layout sparse_csc: the last two sparse dimensions are the matrix.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<to_compressed<Layout::SparseCsc>>,
};
OP(to_sparse_bsr){
    .schema = "to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
    .doc = "As to_sparse, to layout sparse_bsr: blocks that have a nonzero element are kept.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<to_blocks<Layout::SparseBsr>>,
};
OP(to_sparse_bsc){
    .schema = "to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
    .doc = "As to_sparse, to layout sparse_bsc: blocks that have a nonzero element are kept.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<to_blocks<Layout::SparseBsc>>,
};
OP(_to_sparse_sparse_dim){
    .schema = "_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    .doc = "As to_sparse, as a tensor of its own.",
    .forms = hidden,
    .flags = any_layout | shape_from_data,
    .any = typed_kernel<to_sparse_dim_kernel>,
    .derivatives = {vjp("self", to_sparse_gradient, saves("self"))},
    .node = "ToSparseBackward0",
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_to_sparse){
    .schema =
        "_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? "
        "dense_dim=None) -> Tensor",
    .doc = "As to_sparse, as a tensor of its own.",
    .forms = hidden,
    .flags = any_layout | shape_from_data,
    .any = typed_kernel<to_sparse_kernel>,
    .derivatives = {vjp("self", to_sparse_gradient, saves("self"))},
    .node = "ToSparseBackward0",
    .hole = "batch: transforms do not take sparse tensors",
};
OP(sparse_mask){
    .schema = "sparse_mask(Tensor self, Tensor mask) -> Tensor",
    .doc = "The values of self at the positions of a sparse mask, in its layout.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<sparse_mask_kernel>,
    .derivatives = {vjp("self", mask_gradient, saves("self"))},
    .hole = "batch: transforms do not take sparse tensors",
};
