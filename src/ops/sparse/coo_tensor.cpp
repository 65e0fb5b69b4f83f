// Tensors of layout sparse_coo: made from indices and values, asked for them, and coalesced.
#include "ops/sparse/coo_tensor.h"

#include <algorithm>

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/sparse/indices.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"
#include "ops/sparse/accessors.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/coo.h"
#include "ops/sparse/layouts.h"
#include "ops/sparse/validate.h"

namespace facula {
namespace {

using namespace sparse;
using OptionalDType = std::optional<DType>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using Flag = std::optional<bool>;

void check_dims(int64_t sparse_dim, int64_t dense_dim, IntSpan size, const char* op) {
  check(sparse_dim >= 0 && dense_dim >= 0 &&
            static_cast<int64_t>(size.size()) - sparse_dim == dense_dim,
        op, "(): expected len(size) == sparse_dim + dense_dim; got ", size.size(), ", ", sparse_dim,
        " and ", dense_dim);
  checked_numel(size);
}

Tensor with_dims(int64_t sparse_dim, int64_t dense_dim, IntSpan size, OptionalDType dtype,
                 OptionalLayout, OptionalDevice device, Flag) {
  check_dims(sparse_dim, dense_dim, size, "_sparse_coo_tensor_with_dims");
  return empty_coo(size, sparse_dim, dtype.value_or(default_dtype()),
                   device.value_or(thread_state.default_device));
}

Tensor with_dims_and_tensors(int64_t sparse_dim, int64_t dense_dim, IntSpan size,
                             const Tensor& indices, const Tensor& values, OptionalDType,
                             OptionalLayout, OptionalDevice, Flag, Flag is_coalesced) {
  check_dims(sparse_dim, dense_dim, size, "_sparse_coo_tensor_with_dims_and_tensors");
  check_coo_sizes(indices, values, size);
  return coo_tensor(size, indices, values, is_coalesced.value_or(false));
}

// The least sizes that hold all indices, and those of the values.
IntVec least_sizes(const Tensor& indices, const Tensor& values) {
  IntVec sizes;
  const int64_t dims = indices.sizes()[0], n = indices.sizes()[1];
  const Tensor own = ops::contiguous(indices);
  check_kind(ErrorKind::NotImplemented, own.device().is_cpu(),
             "sparse_coo_tensor(): expected a size for indices on ", str(own.device()));
  for (int64_t d = 0; d < dims; ++d) {
    int64_t size = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = own.data<int64_t>()[d * n + i];
      check(at >= 0, "found negative index ", at, " for dim ", d);
      check(at < INT64_MAX, "sparse_coo_tensor(): an index of dim ", d, " is too large; got ", at);
      size = std::max(size, at + 1);
    }
    sizes.push_back(size);
  }
  return joined(sizes, values.sizes().subspan(1));
}

Tensor made(const Tensor& indices, const Tensor& values, IntSpan size, OptionalDType dtype,
            OptionalDevice device, Flag is_coalesced, bool checked) {
  if (values.defined() && values.dim() == 0)
    return made(indices, ops::unsqueeze(values, 0), size, dtype, device, is_coalesced, checked);
  check_coo_sizes(indices, values, size);
  if (checked) check_coo(indices, values, size, is_coalesced.value_or(false));
  const DType d = dtype.value_or(values.dtype());
  const Device there = device.value_or(values.device());
  const Tensor v = ops::to(values, there, d),
               i = indices.device() == there ? indices : ops::to(indices, there, DType::Int64);
  return ops::_sparse_coo_tensor_with_dims_and_tensors(
      i.sizes()[0], v.dim() - 1, size, i, v, d, Layout::Sparse, there, std::nullopt, is_coalesced);
}

Tensor of_parts(const Tensor& indices, const Tensor& values, OptionalDType dtype, OptionalLayout,
                OptionalDevice device, Flag, Flag is_coalesced) {
  const Tensor v = values.dim() == 0 ? ops::unsqueeze(values, 0) : values;
  check_coo_shapes(indices, v);
  return made(indices, v, least_sizes(indices, v), dtype, device, is_coalesced,
              checks_invariants());
}
Tensor of_parts_and_size(const Tensor& indices, const Tensor& values, IntSpan size,
                         OptionalDType dtype, OptionalLayout, OptionalDevice device, Flag,
                         Flag is_coalesced) {
  return made(indices, values, size, dtype, device, is_coalesced, checks_invariants());
}
Tensor of_size(IntSpan size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
               Flag pin) {
  return with_dims(static_cast<int64_t>(size.size()), 0, size, dtype, layout, device, pin);
}

void validate(const Tensor& indices, const Tensor& values, IntSpan size, Flag is_coalesced, Flag) {
  check_coo(indices, values, size, is_coalesced.value_or(false));
}

// --- gradients: those of values are what the gradient has at their positions

// Of a gradient that is sparse itself: zeros where it has no element.
Tensor values_among(const Tensor& grad, const Tensor& indices) {
  const Tensor g = ops::coalesce(grad);
  const Tensor wanted = cpu::sparse::flat_positions(ops::contiguous(indices), sparse_sizes(g));
  const Tensor places = cpu::sparse::places_of(wanted, flat_positions(g));
  const Tensor values = ops::values(g);
  const IntVec sizes = joined(wanted.numel(), values.sizes().subspan(1));
  if (values.sizes()[0] == 0) return ops::new_zeros(values, sizes);
  IntVec column(sizes.size(), 1);
  column[0] = wanted.numel();
  const Tensor found = ops::reshape(ops::ge(places, 0), column);
  return ops::where(found, ops::index_select(values, 0, ops::clamp_min(places, 0)), 0);
}

}  // namespace

namespace sparse {

Tensor values_at(const Tensor& grad, const Tensor& indices) {
  if (is_compressed(grad)) return values_at(ops::to_dense(grad), indices);
  if (is_coo(grad) && sparse_dims(coo(grad)) != indices.sizes()[0])
    return values_at(ops::to_dense(grad), indices);
  if (is_coo(grad)) return values_among(grad, indices);
  const auto dims = static_cast<size_t>(indices.sizes()[0]);
  const IntSpan outer = grad.sizes().first(dims), inner = grad.sizes().subspan(dims);
  const Tensor flat = cpu::sparse::flat_positions(ops::contiguous(indices), outer);
  return ops::index_select(ops::reshape(grad, joined(checked_numel(outer), inner)), 0, flat);
}

}  // namespace sparse
}  // namespace facula

using namespace facula;

OP(_sparse_coo_tensor_with_dims){
    .schema =
        "_sparse_coo_tensor_with_dims(int sparse_dim, int dense_dim, int[] size, *, ScalarType? "
        "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False) -> Tensor",
    .doc = "A sparse_coo tensor without elements.",
    .forms = hidden,
    .flags = factory | any_layout,
    .any = typed_kernel<with_dims>,
};
OP(_sparse_coo_tensor_with_dims_and_tensors){
    .schema =
        "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, "
        "Tensor indices, Tensor values, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=False, bool? is_coalesced=None) -> Tensor",
    .doc = "A sparse_coo tensor over indices and values; indices are not read.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<with_dims_and_tensors>,
    .derivatives = {vjp(
        "values", [](Backward& b) { return sparse::values_like(b["result"], b.grad()); },
        saves("result"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(sparse_coo_tensor_size){
    .schema =
        "sparse_coo_tensor.size(int[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=False) -> Tensor",
    .doc = "A sparse_coo tensor without elements, all of whose dimensions are sparse.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .flags = factory | any_layout,
    .any = typed_kernel<of_size>,
};
OP(sparse_coo_tensor_indices){
    .schema =
        "sparse_coo_tensor.indices(Tensor indices, Tensor values, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? "
        "is_coalesced=None) -> Tensor",
    .doc =
        "A sparse_coo tensor with values (nnz, dense...) at indices (sparse dims, nnz), of the "
        "least size that holds them.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<of_parts>,
};
OP(sparse_coo_tensor_indices_size){
    .schema =
        "sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, ScalarType? "
        "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? "
        "is_coalesced=None) -> Tensor",
    .doc = "A sparse_coo tensor with values (nnz, dense...) at indices (sparse dims, nnz).",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<of_parts_and_size>,
};
OP(_sparse_coo_tensor_unsafe){
    .schema =
        "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, ScalarType? "
        "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? "
        "is_coalesced=None) -> Tensor",
    .doc = "As sparse_coo_tensor with a size; operators check indices when they read them.",
    .composite = Composite::Implicit,
    .any = typed_kernel<of_parts_and_size>,
};
OP(_validate_sparse_coo_tensor_args){
    .schema =
        "_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, SymInt[] size, bool? "
        "is_coalesced=None, bool? check_pinning=None) -> ()",
    .doc = "RuntimeError unless the parts make a sparse_coo tensor of this size.",
    .composite = Composite::Implicit,
    .any = typed_kernel<validate>,
};
