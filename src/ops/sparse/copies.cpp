// Copies, factories and changes of size of sparse tensors.
#include "ops/create/copy.h"

#include "dispatch/typed.h"
#include "ops/create/creation.h"
#include "ops/sparse/accessors.h"
#include "ops/sparse/compressed.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/copies.h"
#include "ops/sparse/layouts.h"

namespace facula {
namespace {

using namespace sparse;
using OptionalDType = std::optional<DType>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using OptionalFormat = std::optional<MemoryFormat>;
using Flag = std::optional<bool>;

void check_format(OptionalFormat f) {
  check(!f || *f == MemoryFormat::Preserve,
        "unsupported memory format option: sparse tensors take none but preserve_format");
}

Tensor clone_coo(const Tensor& self, OptionalFormat format) {
  check_format(format);
  const Coo& c = coo(self);
  return coo_tensor(self.sizes(), ops::clone(c.indices), ops::clone(c.values), c.coalesced);
}
Tensor clone_compressed(const Tensor& self, OptionalFormat format) {
  check_format(format);
  const Compressed& c = compressed(self);
  return compressed_tensor(self->layout, self.sizes(), ops::clone(c.compressed),
                           ops::clone(c.plain), ops::clone(c.values));
}

Tensor in_layout(const Tensor& t, OptionalLayout layout) {
  if (!layout || *layout == t->layout) return t;
  return *layout == Layout::Strided ? ops::to_dense(t) : ops::to_sparse(t, *layout);
}

Tensor copied_coo(const Tensor& self, OptionalDType dtype, OptionalLayout layout,
                  OptionalDevice device, Flag, bool non_blocking, OptionalFormat format) {
  check_format(format);
  const Coo& c = coo(self);
  const Device there = device.value_or(self.device());
  const Tensor values =
      ops::_to_copy(c.values, dtype.value_or(self.dtype()), {}, there, {}, non_blocking);
  const Tensor indices = ops::_to_copy(c.indices, {}, {}, there, {}, non_blocking);
  return in_layout(coo_tensor(self.sizes(), indices, values, c.coalesced), layout);
}
Tensor copied_compressed(const Tensor& self, OptionalDType dtype, OptionalLayout layout,
                         OptionalDevice device, Flag, bool non_blocking, OptionalFormat format) {
  check_format(format);
  const Compressed& c = compressed(self);
  const Device there = device.value_or(self.device());
  const auto moved = [&](const Tensor& t, DType d) {
    return ops::_to_copy(t, d, {}, there, {}, non_blocking);
  };
  const Tensor made = compressed_tensor(
      self->layout, self.sizes(), moved(c.compressed, c.compressed.dtype()),
      moved(c.plain, c.plain.dtype()), moved(c.values, dtype.value_or(self.dtype())));
  return in_layout(made, layout);
}

[[noreturn]] void refuse_copy(const Tensor& self, const Tensor& src) {
  throw Error(ErrorKind::Runtime, "copy_() between dense and sparse Tensors is not implemented! ",
              "Found self of layout ", layout_name(self->layout), " and src of layout ",
              layout_name(src->layout));
}
void check_same_size(const Tensor& self, const Tensor& src) {
  check(same_sizes(self.sizes(), src.sizes()), "copy_(): expected sizes ", str(self.sizes()),
        "; got ", str(src.sizes()));
}
Tensor own(const Tensor& t, DType dtype, Device device) {
  return ops::_to_copy(t, dtype, {}, device);
}

Tensor copy_into_coo(const Tensor& self, const Tensor& src, bool) {
  if (!is_coo(self) || !is_coo(src)) refuse_copy(self, src);
  check_same_size(self, src);
  if (self.is_same(src)) return self;
  const Coo& from = coo(src);
  Coo& to = coo(self);
  const Tensor indices = own(from.indices, DType::Int64, self.device()),
               values = own(from.values, self.dtype(), self.device());
  to.indices = indices;
  to.values = values;
  to.coalesced = from.coalesced;
  return self;
}
Tensor copy_into_compressed(const Tensor& self, const Tensor& src, bool) {
  if (self->layout != src->layout) refuse_copy(self, src);
  check_same_size(self, src);
  if (self.is_same(src)) return self;
  const Compressed& from = compressed(src);
  Compressed& to = compressed(self);
  const DType index = from.compressed.dtype();
  const Tensor starts = own(from.compressed, index, self.device()),
               plain = own(from.plain, index, self.device()),
               values = own(from.values, self.dtype(), self.device());
  to.compressed = starts;
  to.plain = plain;
  to.values = values;
  return self;
}

// --- factories

Tensor empty_compressed(IntSpan size, Layout layout, DType dtype, Device device) {
  check(!in_blocks(layout) && size.size() >= 2, "torch.empty: Only batched sparse compressed ",
        "(non-block) tensors are supported, but got size ", str(size));
  checked_numel(size);
  const size_t batch = size.size() - 2;
  const int64_t lines = by_rows(layout) ? size[batch] : size[batch + 1];
  const IntSpan leading = size.first(batch);
  const IntVec none = joined(leading, IntVec(1, 0));
  return compressed_tensor(
      layout, size, ops::zeros(joined(leading, IntVec(1, lines + 1)), DType::Int64, {}, device),
      empty_tensor(none, DType::Int64, device), empty_tensor(none, dtype, device));
}
Tensor empty_of(IntSpan size, Layout layout, DType dtype, Device device) {
  if (layout == Layout::Strided) return ops::zeros(size, dtype, {}, device);
  if (layout != Layout::Sparse) return empty_compressed(size, layout, dtype, device);
  return empty_coo(size, static_cast<int64_t>(size.size()), dtype, device);
}

Tensor zeros(IntSpan size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
             Flag) {
  return empty_of(size, *layout, dtype.value_or(default_dtype()),
                  device.value_or(thread_state.default_device));
}
Tensor empty(IntSpan size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device, Flag,
             OptionalFormat format) {
  check_format(format);
  return zeros(size, dtype, layout, device, {});
}
Tensor full(IntSpan, const Scalar&, OptionalDType, OptionalLayout, OptionalDevice, Flag) {
  throw Error(ErrorKind::Runtime, "full(...) is not implemented for sparse layout");
}
Tensor ones(IntSpan, OptionalDType, OptionalLayout, OptionalDevice, Flag) {
  throw Error(ErrorKind::Runtime, "ones(): full(...) is not implemented for sparse layout");
}

// Without elements; a sparse_coo tensor keeps its number of sparse dimensions.
Tensor zeros_like(const Tensor& self, OptionalDType dtype, OptionalLayout layout,
                  OptionalDevice device, Flag, OptionalFormat) {
  const Layout wanted = layout.value_or(self->layout);
  const DType d = dtype.value_or(self.dtype());
  const Device there = device.value_or(self.device());
  if (is_coo(self) && wanted == Layout::Sparse)
    return empty_coo(self.sizes(), sparse_dims(coo(self)), d, there);
  check(!is_compressed(self) || wanted == self->layout,
        "empty_like with different sparse layout is not supported (self is ",
        backend_name(self->layout), " but you requested ", backend_name(wanted), ")");
  if (in_blocks(wanted)) {
    const Compressed& c = compressed(self);
    const auto batch = static_cast<size_t>(c.compressed.dim() - 1);
    IntVec none(c.plain.sizes()), values(c.values.sizes());
    none[batch] = values[batch] = 0;
    return compressed_tensor(wanted, self.sizes(), ops::zeros_like(c.compressed, {}, {}, there),
                             empty_tensor(none, c.plain.dtype(), there),
                             empty_tensor(values, d, there));
  }
  return empty_of(self.sizes(), wanted, d, there);
}
// A compressed tensor keeps its positions, with values that are not set.
Tensor empty_like(const Tensor& self, OptionalDType dtype, OptionalLayout layout,
                  OptionalDevice device, Flag pin, OptionalFormat format) {
  if (!is_compressed(self) || (layout && *layout != self->layout))
    return zeros_like(self, dtype, layout, device, pin, format);
  const Compressed& c = compressed(self);
  const Device there = device.value_or(self.device());
  const auto moved = [&](const Tensor& t) { return ops::_to_copy(t, {}, {}, there); };
  return compressed_tensor(self->layout, self.sizes(), moved(c.compressed), moved(c.plain),
                           ops::zeros_like(c.values, dtype, {}, there));
}
Tensor new_zeros(const Tensor& self, IntSpan size, OptionalDType dtype, OptionalLayout layout,
                 OptionalDevice device, Flag) {
  return empty_of(size, layout.value_or(self->layout), dtype.value_or(self.dtype()),
                  device.value_or(self.device()));
}

// --- in place

Tensor zero_coo(const Tensor& self) {
  Coo& c = coo(self);
  const Tensor none = empty_coo(self.sizes(), sparse_dims(c), self.dtype(), self.device());
  c.indices = coo(none).indices;
  c.values = coo(none).values;
  c.coalesced = true;
  return self;
}
Tensor zero_compressed(const Tensor& self) {
  const Tensor none = zeros_like(self, {}, {}, {}, {}, {});
  const Compressed& from = compressed(none);
  Compressed& c = compressed(self);
  c.compressed = from.compressed;
  c.plain = from.plain;
  c.values = from.values;
  return self;
}
Tensor fill_compressed(const Tensor& self, const Scalar& value) {
  ops::fill_(compressed(self).values, value);
  return self;
}

void check_resizable(const Tensor& self, IntSpan size, int64_t sparse_dim, int64_t dense_dim,
                     const char* op) {
  check(is_coo(self), op, "(): expected a sparse_coo tensor; got ", layout_name(self->layout));
  check(sparse_dim >= 0 && dense_dim >= 0 &&
            sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
        "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (", dense_dim,
        "), but got ", size.size());
  checked_numel(size);
}

void become(const Tensor& self, const Tensor& from) {
  Coo& c = coo(self);
  c.indices = coo(from).indices;
  c.values = coo(from).values;
  c.coalesced = coo(from).coalesced;
  self->set_checked(from.sizes());
}

Tensor sparse_resize(const Tensor& self, IntSpan size, int64_t sparse_dim, int64_t dense_dim) {
  check_resizable(self, size, sparse_dim, dense_dim, "sparse_resize_");
  const Coo& c = coo(self);
  const bool same_dims = sparse_dim == sparse_dims(c) && dense_dim == c.values.dim() - 1;
  if (nnz(c) == 0) {
    become(self, empty_coo(size, sparse_dim, self.dtype(), self.device()));
    return self;
  }
  check(same_dims, "sparse_resize_(): the numbers of sparse and dense dimensions of a tensor with ",
        "elements cannot change; got ", sparse_dim, " and ", dense_dim, " for ", sparse_dims(c),
        " and ", c.values.dim() - 1);
  for (size_t d = 0; d < size.size(); ++d)
    check(size[d] >= self.sizes()[d], "sparse_resize_(): sizes of a tensor with elements cannot ",
          "shrink; got ", str(size), " for ", str(self.sizes()));
  Tensor values = c.values;
  const IntVec wider = joined(nnz(c), size.subspan(static_cast<size_t>(sparse_dim)));
  if (!same_sizes(wider, values.sizes())) {
    check_kind(
        ErrorKind::NotImplemented, false,
        "sparse_resize_(): larger dense sizes of a tensor with elements are not implemented");
  }
  become(self, coo_tensor(size, c.indices, values, c.coalesced));
  return self;
}
Tensor sparse_resize_and_clear(const Tensor& self, IntSpan size, int64_t sparse_dim,
                               int64_t dense_dim) {
  check_resizable(self, size, sparse_dim, dense_dim, "sparse_resize_and_clear_");
  become(self, empty_coo(size, sparse_dim, self.dtype(), self.device()));
  return self;
}
Tensor resize_as_sparse(const Tensor& self, const Tensor& the_template) {
  check_kind(ErrorKind::NotImplemented, is_coo(the_template),
             "resize_as_sparse_(): expected a sparse_coo template; got ",
             layout_name(the_template->layout));
  if (same_sizes(self.sizes(), the_template.sizes())) return self;
  return sparse_resize(self, the_template.sizes(), sparse_dims(coo(the_template)),
                       coo(the_template).values.dim() - 1);
}

const CooKernels coo_kernels{
    kernel<clone_coo>(op::clone),
    kernel<copied_coo>(op::_to_copy),
    kernel<copy_into_coo>(op::copy_),
    kernel<zeros>(op::zeros),
    kernel<empty>(op::empty_memory_format),
    kernel<full>(op::full),
    kernel<ones>(op::ones),
    kernel<zeros_like>(op::zeros_like),
    kernel<empty_like>(op::empty_like),
    kernel<new_zeros>(op::new_zeros),
    kernel<new_zeros>(op::new_empty),
    kernel<zero_coo>(op::zero_),
};
const CompressedKernels compressed_kernels{
    kernel<clone_compressed>(op::clone),
    kernel<copied_compressed>(op::_to_copy),
    kernel<copy_into_compressed>(op::copy_),
    kernel<zeros>(op::zeros),
    kernel<empty>(op::empty_memory_format),
    kernel<full>(op::full),
    kernel<ones>(op::ones),
    kernel<zeros_like>(op::zeros_like),
    kernel<empty_like>(op::empty_like),
    kernel<new_zeros>(op::new_zeros),
    kernel<new_zeros>(op::new_empty),
    kernel<zero_compressed>(op::zero_),
    kernel<fill_compressed>(op::fill__Scalar),
};

}  // namespace
}  // namespace facula

using namespace facula;

OP(sparse_resize_){
    .schema =
        "sparse_resize_(Tensor(a!) self, SymInt[] size, int sparse_dim, int dense_dim) -> "
        "Tensor(a!)",
    .doc = "Gives a sparse_coo tensor other sizes, which may not shrink where it has elements.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<sparse_resize>,
    .hole =
        "derivatives: it changes sizes or marks, not values; batch: transforms do not take sparse "
        "tensors",
};
OP(sparse_resize_and_clear_){
    .schema =
        "sparse_resize_and_clear_(Tensor(a!) self, SymInt[] size, int sparse_dim, int dense_dim) "
        "-> Tensor(a!)",
    .doc = "Gives a sparse_coo tensor other sizes and takes its elements out.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<sparse_resize_and_clear>,
    .hole =
        "derivatives: it changes sizes or marks, not values; batch: transforms do not take sparse "
        "tensors",
};
OP(resize_as_sparse_){
    .schema = "resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)",
    .doc = "Gives a sparse_coo tensor the sizes of another.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<resize_as_sparse>,
    .hole =
        "derivatives: it changes sizes or marks, not values; batch: transforms do not take sparse "
        "tensors",
};
