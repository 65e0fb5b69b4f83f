// Copies, conversions, and changes of a tensor's memory.
#include "ops/create/copy.h"

#include "core/autograd_meta.h"

#include "kernels/cpu/elementwise/described_loop.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/creation.h"
#include "ops/create/device_copy.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {

Tensor number_tensor(const Value& v, Device device) {
  const Scalar s = v.as_scalar();
  const DType d =
      s.is_floating() ? DType::Float64 : (s.is_complex() ? DType::Complex128 : s.dtype());
  const Tensor t = empty_tensor({}, d, device.is_meta() ? device : Device{});
  if (!device.is_meta()) cpu::fill(t, s);
  t->wrapped_number = true;
  return t;
}

namespace {

// --- copy_

void meta_copy(Meta&, const Tensor& self, const Tensor& src, bool) {
  const IntVec shape = broadcast_sizes(self.sizes(), src.sizes());
  check(same_sizes(shape, self.sizes()), "output with shape ", str(self.sizes()),
        " doesn't match the broadcast shape ", str(shape));
  check(!may_self_overlap(self.sizes(), self.strides()),
        "unsupported operation: a tensor that is written to must hold each element at a place of "
        "its own (use clone() first)");
  if (!self.is_meta() && src.is_meta())
    throw Error(ErrorKind::NotImplemented, "Cannot copy out of meta tensor: it has no data");
}

void copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_same(src)) return;
  if (self.device().is_cpu() && src.device().is_cpu()) return cpu::copy(self, src);
  copy_by_device(self, src, non_blocking);
}

// On the CPU copies of elements that lie in the same order may run in groups (graph/rows.h).
void copy_on_cpu(void*, OpCall& c) {
  if (cpu::LoopOfCall* loop = cpu::described_loop()) {
    if (c.args[1].is_tensor() && !c.tensor(0).is_same(c.tensor(1)))
      cpu::describe_copy(c.tensor(0), c.tensor(1), 1, *loop);
    return;
  }
  typed::kernel<&copy_>(nullptr, c);
}

// --- clone and conversions

IntVec strides_like(const Tensor& t, MemoryFormat f) {
  if (f != MemoryFormat::Preserve) return strides_for(t.sizes(), f);
  if (is_dense_non_overlapping(t.sizes(), t.strides())) return IntVec(t.strides());
  const Tensor* inputs[] = {&t};
  return elementwise_strides(t.sizes(), inputs);
}

void meta_clone(Meta& m, const Tensor& self, std::optional<MemoryFormat> format) {
  const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (self.is_contiguous() && f == MemoryFormat::Preserve) return m.result_same(self, self.dtype());
  m.result(0, self.sizes(), self.dtype(), strides_like(self, f));
}
void clone(const Tensor& self, std::optional<MemoryFormat>, const Tensor& out) {
  copy_(out, self, false);
}
void clone_on_cpu(void*, OpCall& c) {
  if (cpu::LoopOfCall* loop = cpu::described_loop())
    return cpu::describe_copy(c.results[0].as_tensor(), c.tensor(0), 0, *loop);
  typed::kernel<&clone>(nullptr, c);
}

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  const bool preserve = format == MemoryFormat::Preserve;
  if (preserve ? self.is_contiguous() : self.is_contiguous(format)) return self;
  check(!preserve, "contiguous(): memory_format must name a layout; got preserve_format");
  return ops::clone(self, format);
}

Tensor _to_copy(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin, bool non_blocking,
                std::optional<MemoryFormat> format) {
  if (layout && *layout != Layout::Strided)
    throw Error(ErrorKind::NotImplemented, "to(): only the strided layout is implemented");
  const IntVec strides = strides_like(self, format.value_or(MemoryFormat::Preserve));
  const DType d = dtype.value_or(self.dtype());
  const Device there = device.value_or(self.device());
  check(!pin.value_or(false) || there.is_cpu(),
        "to(): only dense CPU tensors can be pinned; got device ", str(there));
  const Tensor t = pin.value_or(false) ? empty_pinned(self.sizes(), strides, d)
                                       : empty_strided_tensor(self.sizes(), strides, d, there);
  ops::copy_(t, self, non_blocking);
  return t;
}

bool fits(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
          std::optional<MemoryFormat> f) {
  if (dtype && *dtype != self.dtype()) return false;
  if (device && device->type != self.device().type) return false;
  if (device && device->is_accelerator() && with_index(*device) != self.device()) return false;
  // The order of the strides counts, not whether there are gaps between elements.
  return !f || *f == MemoryFormat::Preserve || suggested_format(self) == *f;
}

Tensor converted(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                 bool non_blocking, bool copy, std::optional<MemoryFormat> format) {
  if (!copy && fits(self, dtype, device, format)) return self;
  return ops::_to_copy(self, dtype, {}, device, {}, non_blocking, format);
}
Tensor to_dtype_layout(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                       std::optional<Device> device, std::optional<bool>, bool non_blocking,
                       bool copy, std::optional<MemoryFormat> format) {
  if (layout && *layout != Layout::Strided)
    throw Error(ErrorKind::NotImplemented, "to(): only the strided layout is implemented");
  return converted(self, dtype, device, non_blocking, copy, format);
}
Tensor to_device(const Tensor& self, Device device, DType dtype, bool non_blocking, bool copy,
                 std::optional<MemoryFormat> format) {
  return converted(self, dtype, device, non_blocking, copy, format);
}
Tensor to_dtype(const Tensor& self, DType dtype, bool non_blocking, bool copy,
                std::optional<MemoryFormat> format) {
  return converted(self, dtype, {}, non_blocking, copy, format);
}
Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
                std::optional<MemoryFormat> format) {
  return converted(self, other.dtype(), other.device(), non_blocking, copy, format);
}
Tensor type_as(const Tensor& self, const Tensor& other) { return ops::to(self, other); }

Tensor resolve_conj(const Tensor& self) { return self->conj ? ops::clone(self) : self; }
Tensor resolve_neg(const Tensor& self) { return self->neg ? ops::clone(self) : self; }

Scalar item(const Tensor& self) {
  check(self.numel() == 1, "a Tensor with ", self.numel(),
        " elements cannot be converted to Scalar");
  return ops::_local_scalar_dense(self);
}
Scalar local_scalar(const Tensor& self) {
  check(self.numel() > 0,
        "_local_scalar_dense(): expected a tensor with an element; got an empty one of shape ",
        str(self.sizes()));
  Scalar s = read_element(self.dtype(), self.data());
  if (self->conj) s = s.conj();
  return self->neg ? -s : s;
}

// --- fill

void fill_scalar(const Tensor& self, const Scalar& value) {
  if (self.device().is_cpu()) return cpu::fill(self, value);
  const Tensor host = empty_tensor({}, self.dtype());
  cpu::fill(host, value);
  if (!fill_by_device(self, host)) ops::copy_(self, ops::expand(host, self.sizes()));
}
// It writes to self alone, whatever that is.
void meta_fill(Meta&) {}
void fill_tensor(const Tensor& self, const Tensor& value) {
  check(value.dim() == 0, "fill_(): value must be 0-dimensional; got ", value.dim(), " dimensions");
  ops::copy_(self, value);
}
void zero_(const Tensor& self) { fill_scalar(self, 0); }

// --- memory

void resize_(const Tensor& self, IntSpan size, std::optional<MemoryFormat> format) {
  check(!(self->autograd && (self->autograd->requires_grad || self->autograd->grad_fn)) ||
            same_sizes(size, self.sizes()),
        "cannot resize variables that require grad");
  const MemoryFormat f = format.value_or(MemoryFormat::Contiguous);
  checked_numel(size);
  if (same_sizes(size, self.sizes()) && !format) return;
  const IntVec strides = strides_for(size, f);
  int64_t wanted;
  const bool over = __builtin_add_overflow(self.storage_offset(), extent(size, strides), &wanted) ||
                    __builtin_mul_overflow(wanted, static_cast<int64_t>(self.itemsize()), &wanted);
  check(!over, "Storage size calculation overflowed with sizes=", str(size));
  if (checked_numel(size) > 0 && wanted > static_cast<int64_t>(self->storage->nbytes()))
    self->storage->resize(static_cast<size_t>(wanted));
  self->set_geometry(size, strides);
}
void resize_as_(const Tensor& self, const Tensor& other, std::optional<MemoryFormat> format) {
  ops::resize_(self, other.sizes(), format);
}
void resize_storage_bytes_(const Tensor& self, int64_t bytes) {
  check(bytes >= 0, "resize_storage_bytes_(): expected a size that is not negative; got ", bytes);
  self->storage->resize(static_cast<size_t>(bytes));
}
// The storage grows where the geometry reaches further.
void set_storage(const Tensor& self, Storage* source, int64_t offset, IntSpan size,
                 IntSpan stride) {
  check(offset >= 0, "Tensor: invalid storage offset ", offset);
  checked_numel(size);
  const IntVec strides =
      stride.empty() && !size.empty() ? contiguous_strides(size) : IntVec(stride);
  check(strides.size() == size.size(), "set_(): expected as many strides as sizes; got ",
        str(strides), " and ", str(size));
  const int64_t reach = extent(size, strides);
  int64_t bytes;
  const bool over = __builtin_add_overflow(reach, offset, &bytes) ||
                    __builtin_mul_overflow(bytes, static_cast<int64_t>(self.itemsize()), &bytes);
  check(!over, "Storage size calculation overflowed with sizes=", str(size));
  check(source->device() == self->storage->device(), "set_(): expected a storage on ",
        str(self->storage->device()), "; got one on ", str(source->device()));
  const bool fits = reach == 0 || bytes <= static_cast<int64_t>(source->nbytes());
  if (!fits) source->resize(static_cast<size_t>(bytes));
  const Tensor t = tensor_over(Ref<Storage>::share(source), self.dtype(), offset, size, strides);
  self->storage = t->storage;
  self->offset = offset;
  self->set_geometry(t.sizes(), t.strides());
}
void set_whole_storage(const Tensor& self, Storage* source) {
  const auto n = static_cast<int64_t>(source->nbytes() / self.itemsize());
  set_storage(self, source, 0, IntSpan(&n, 1), {});
}
void set_tensor(const Tensor& self, const Tensor& source) {
  check(self.dtype() == source.dtype(), "Could not set tensor of type ", name(source.dtype()),
        " to a tensor of type ", name(self.dtype()));
  self->storage = source->storage;
  self->offset = source->offset;
  self->copy_geometry(*source.get());
}
void set_part_of_tensor(const Tensor& self, const Tensor& source, int64_t offset, IntSpan size,
                        IntSpan stride) {
  check(self.dtype() == source.dtype(), "Could not set tensor of type ", name(source.dtype()),
        " to a tensor of type ", name(self.dtype()));
  set_storage(self, source->storage.get(), offset, size, stride);
}
// What x.data = y takes over of y; histories and versions stay.
void set_data(const Tensor& self, const Tensor& from) {
  const bool autograd = self->layers.has(Layer::Autograd);
  self->storage = from->storage;
  self->offset = from->offset;
  self->dtype = from->dtype;
  self->device = from->device;
  self->inference = from->inference;
  self->conj = from->conj;
  self->neg = from->neg;
  self->layers = from->layers - LayerSet(Layer::Autograd);
  if (autograd) self->layers |= Layer::Autograd;
  self->set_geometry(from.sizes(), from.strides());
}
void set_nothing(const Tensor& self) {
  self->storage = Storage::make(self.device(), 0);
  self->offset = 0;
  const int64_t none = 0;
  self->set_contiguous({&none, 1});
}

Tensor zeros_for(Backward& b) { return ops::zeros_like(b.grad()); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(copy_){
    .schema = "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    .doc = "Copies src into self, converting dtype and device, broadcasting.",
    .forms = method | functional,
    .flags = handles_conj | cross_device,
    .numbers = names("src"),
    .meta = typed_meta<meta_copy>,
    .cpu = {.function = {&copy_on_cpu}, .describes_loop = true},
    .any = typed_kernel<copy_>,
    .derivatives = {vjp("self", zeros_for), vjp("src", [](Backward& b) { return b.grad(); })},
    .node = "torch::autograd::CopyBackwards",
    .batch = batch::pointwise,
};
OP(clone){
    .schema = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "A copy of self in memory of its own.",
    .forms = function_method,
    .flags = handles_conj,
    .meta = typed_meta<meta_clone>,
    .cpu = {.function = {&clone_on_cpu}, .describes_loop = true},
    .any = typed_kernel<clone>,
    .derivatives = {vjp("self", [](Backward& b) { return b.grad(); })},
    .batch = batch::pointwise,
};
OP(contiguous){
    .schema =
        "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    .doc = "Self where its memory is laid out so, else a copy.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = handles_conj | same_object,
    .any = typed_kernel<contiguous>,
};
OP(_to_copy){
    .schema =
        "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> "
        "Tensor",
    .doc = "A copy of self with another dtype or device.",
    .composite = Composite::Explicit,
    .flags = handles_conj | cross_device,
    .any = typed_kernel<_to_copy>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::to(b.grad(), b.dtype("self")); })},
    .batch = batch::pointwise,
};
OP(to_dtype_layout){
    .schema =
        "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? "
        "memory_format=None) -> Tensor(a)",
    .doc = "Self converted; self itself where nothing changes.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object | cross_device | handles_conj,
    .any = typed_kernel<to_dtype_layout>,
};
OP(to_device){
    .schema =
        "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool "
        "copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)",
    .doc = "Self on another device with another dtype; self itself where nothing changes.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object | cross_device | handles_conj,
    .any = typed_kernel<to_device>,
};
OP(to_dtype){
    .schema =
        "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)",
    .doc = "Self with another dtype; self itself where nothing changes.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object | handles_conj,
    .any = typed_kernel<to_dtype>,
};
OP(to_other){
    .schema =
        "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)",
    .doc = "Self with the dtype and device of other; self itself where nothing changes.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object | cross_device | handles_conj,
    .any = typed_kernel<to_other>,
};
OP(type_as){
    .schema = "type_as(Tensor self, Tensor other) -> Tensor",
    .doc = "Self with the dtype of other.",
    .forms = method,
    .composite = Composite::Implicit,
    .flags = same_object | cross_device,
    .any = typed_kernel<type_as>,
};
OP(resolve_conj){
    .schema = "resolve_conj(Tensor(a) self) -> Tensor(a)",
    .doc = "Self with its conjugate bit carried out.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .flags = same_object | handles_conj,
    .any = typed_kernel<resolve_conj>,
};
OP(resolve_neg){
    .schema = "resolve_neg(Tensor(a) self) -> Tensor(a)",
    .doc = "Self with its negative bit carried out.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .flags = same_object | handles_conj,
    .any = typed_kernel<resolve_neg>,
};
OP(item){
    .schema = "item(Tensor self) -> Scalar",
    .doc = "The one element of self as a Python number.",
    .forms = method,
    .composite = Composite::Implicit,
    .flags = handles_conj | shape_from_data,
    .any = typed_kernel<item>,
};
OP(_local_scalar_dense){
    .schema = "_local_scalar_dense(Tensor self) -> Scalar",
    .doc = "The first element of self as a number.",
    .flags = handles_conj | shape_from_data,
    .cpu = typed_kernel<local_scalar>,
    .not_differentiable = names("self", "result"),
    .hole = "vmap: a number in Python cannot stand for a batch",
};

OP(fill__Scalar){
    .schema = "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    .doc = "Sets every element of self to value.",
    .forms = function_method | functional,
    .flags = handles_conj,
    .meta = meta_fill,
    .cpu = typed_kernel<fill_scalar>,
    .any = typed_kernel<fill_scalar>,
    .derivatives = {vjp("self", zeros_for)},
    .node = "FillBackward2",
    .batch = batch::pointwise,
};
OP(fill__Tensor){
    .schema = "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    .doc = "Sets every element of self to the one element of value.",
    .forms = function_method | functional,
    .flags = handles_conj | cross_device,
    .any = typed_kernel<fill_tensor>,
    .derivatives = {vjp("self", zeros_for), vjp("value", [](Backward& b) { return b.grad(); })},
    .node = "FillBackward3",
    .hole = "vmap: samples are done one by one",
};
OP(zero_){
    .schema = "zero_(Tensor(a!) self) -> Tensor(a!)",
    .doc = "Sets every element of self to zero.",
    .forms = function_method | functional,
    .flags = handles_conj,
    .meta = meta_fill,
    .cpu = typed_kernel<zero_>,
    .any = typed_kernel<zero_>,
    .derivatives = {vjp("self", zeros_for)},
    .batch = batch::pointwise,
};

OP(resize_){
    .schema =
        "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> "
        "Tensor(a!)",
    .doc =
        "Changes the sizes of self in place; grows its storage where needed, new elements "
        "uninitialised.",
    .forms = method,
    .flags = geometry_only | no_version_bump | nondeterministic,
    .any = typed_kernel<resize_>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
OP(resize_as_){
    .schema =
        "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
        "Tensor(a!)",
    .doc = "Changes the sizes of self in place to those of another tensor.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .flags = geometry_only | no_version_bump,
    .any = typed_kernel<resize_as_>,
};
OP(resize_storage_bytes_){
    .schema = "resize_storage_bytes_(Tensor(a!) self, SymInt new_size) -> Tensor(a!)",
    .doc = "Changes the size of self's storage, in bytes; sizes of tensors over it stay.",
    .flags = geometry_only | no_version_bump | storage_size,
    .any = typed_kernel<resize_storage_bytes_>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
OP(set__source_Storage_storage_offset){
    .schema =
        "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt "
        "storage_offset, SymInt[] size, "
        "SymInt[] stride=[]) -> Tensor(a!)",
    .doc = "Makes self a view of a storage.",
    .forms = method,
    .flags = geometry_only | reads_strides | adopts,
    .any = typed_kernel<set_storage>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
OP(set__source_Storage){
    .schema = "set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)",
    .doc = "Makes self a view of all of a storage.",
    .forms = method,
    .flags = geometry_only | adopts,
    .any = typed_kernel<set_whole_storage>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
OP(set__source_Tensor_storage_offset){
    .schema =
        "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, "
        "SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
    .doc = "Makes self a view of the storage of source.",
    .forms = method,
    .flags = geometry_only | adopts,
    .any = typed_kernel<set_part_of_tensor>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
OP(set_data){
    .schema = "set_data(Tensor(a!) self, Tensor new_data) -> ()",
    .doc = "What x.data = y does: self takes over the memory, geometry and dtype of new_data.",
    .flags = geometry_only | no_version_bump | cross_device | adopts,
    .any = typed_kernel<set_data>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
OP(set__source_Tensor){
    .schema = "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
    .doc = "Makes self share the memory and geometry of source.",
    .forms = method,
    .flags = geometry_only | adopts,
    .any = typed_kernel<set_tensor>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
OP(set_){
    .schema = "set_(Tensor(a!) self) -> Tensor(a!)",
    .doc = "Makes self empty, with a storage of its own.",
    .forms = method,
    .flags = geometry_only | adopts,
    .any = typed_kernel<set_nothing>,
    .hole = "vmap: storage of a batched tensor cannot be changed for each sample",
};
