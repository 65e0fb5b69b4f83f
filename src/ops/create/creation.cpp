// Tensors made from nothing.
#include "ops/create/creation.h"

#include <algorithm>

#include "core/checked.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/device_copy.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

// Factories share their last four arguments: dtype, layout, device, pin_memory.
struct Options {
  DType dtype;
  Device device;
  bool pin;
};

// Uninitialised memory, page-locked where that is asked for.
Tensor fresh(IntSpan sizes, const Options& o) {
  if (!o.pin) [[likely]]
    return empty_tensor(sizes, o.dtype, o.device);
  check(o.device.is_cpu(), "Only dense CPU tensors can be pinned");
  return empty_pinned(sizes, contiguous_strides(sizes), o.dtype);
}
Tensor fresh(IntSpan sizes, IntSpan strides, const Options& o) {
  if (!o.pin) [[likely]]
    return empty_strided_tensor(sizes, strides, o.dtype, o.device);
  check(o.device.is_cpu(), "Only dense CPU tensors can be pinned");
  return empty_pinned(sizes, strides, o.dtype);
}

bool is_strided(std::optional<Layout> layout) { return !layout || *layout == Layout::Strided; }
void check_layout(std::optional<Layout> layout, const char* op) {
  if (!is_strided(layout))
    throw Error(ErrorKind::NotImplemented, op, "(): only the strided layout is implemented");
}

Options options(std::optional<DType> dtype, std::optional<Device> device, std::optional<bool> pin) {
  return {dtype.value_or(default_dtype()), device.value_or(thread_state.default_device),
          pin.value_or(false)};
}
Options options_like(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device,
                     std::optional<bool> pin) {
  return {dtype.value_or(t.dtype()), device.value_or(t.device()), pin.value_or(false)};
}

Tensor empty(IntSpan size, std::optional<DType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin,
             std::optional<MemoryFormat> format) {
  check_layout(layout, "empty");
  const Options o = options(dtype, device, pin);
  if (!format || *format == MemoryFormat::Contiguous) return fresh(size, o);
  check(*format != MemoryFormat::Preserve,
        "empty(): memory_format must name a layout; got preserve_format");
  check(size.size() == (*format == MemoryFormat::ChannelsLast ? 4u : 5u), "required rank ",
        *format == MemoryFormat::ChannelsLast ? 4 : 5, " tensor to use channels_last format");
  return fresh(size, strides_for(size, *format), o);
}

Tensor empty_strided(IntSpan size, IntSpan stride, std::optional<DType> dtype,
                     std::optional<Layout> layout, std::optional<Device> device,
                     std::optional<bool> pin) {
  check_layout(layout, "empty_strided");
  const Options o = options(dtype, device, pin);
  return fresh(size, stride, o);
}

Tensor empty_permuted(IntSpan size, IntSpan physical_layout, std::optional<DType> dtype,
                      std::optional<Layout> layout, std::optional<Device> device,
                      std::optional<bool> pin) {
  check_layout(layout, "empty_permuted");
  const size_t n = size.size();
  check(physical_layout.size() == n,
        "empty_permuted(): size and physical_layout must have the same length; got ", n, " and ",
        physical_layout.size());
  checked_numel(size);
  IntVec order, seen(n);
  for (size_t k = n; k-- > 0;) {
    const int64_t d = physical_layout[k];
    check(d >= 0 && d < static_cast<int64_t>(n),
          "empty_permuted(): Dimension out of range in physical_layout: expected 0 to ",
          static_cast<int64_t>(n) - 1, "; got ", d, " at index ", k);
    check(!seen[d], "Duplicate dim not allowed");
    seen[d] = 1;
    order.push_back(d);
  }
  const Options o = options(dtype, device, pin);
  return fresh(size, dense_strides(size, order), o);
}

Tensor empty_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin,
                  std::optional<MemoryFormat> format) {
  if (!is_strided(layout))
    return ops::empty(self.sizes(), dtype.value_or(self.dtype()), layout,
                      device.value_or(self.device()));
  const Options o = options_like(self, dtype, device, pin);
  const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f != MemoryFormat::Preserve) return fresh(self.sizes(), strides_for(self.sizes(), f), o);
  const Tensor* inputs[] = {&self};
  const bool dense = is_dense_non_overlapping(self.sizes(), self.strides());
  return fresh(self.sizes(),
               dense ? IntVec(self.strides()) : elementwise_strides(self.sizes(), inputs), o);
}

Tensor new_empty(const Tensor& self, IntSpan size, std::optional<DType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin) {
  if (!is_strided(layout))
    return ops::empty(size, dtype.value_or(self.dtype()), layout, device.value_or(self.device()));
  const Options o = options_like(self, dtype, device, pin);
  return fresh(size, o);
}

Tensor new_empty_strided(const Tensor& self, IntSpan size, IntSpan stride,
                         std::optional<DType> dtype, std::optional<Layout> layout,
                         std::optional<Device> device, std::optional<bool> pin) {
  check_layout(layout, "new_empty_strided");
  const Options o = options_like(self, dtype, device, pin);
  return fresh(size, stride, o);
}

// Nobody else knows the tensor yet: on the CPU its memory is written at once.
Tensor filled(Tensor t, const Scalar& value) {
  // Without elements a tensor of another layout is zero.
  if (has_layout_kind(t) && value.to<complex128>() == complex128{0, 0}) return t;
  if (has_layout_kind(t)) return ops::fill_(t, value);
  if (!t.device().is_cpu()) return ops::fill_(t, value);
  cpu::fill(t, value);
  return t;
}
Tensor filled(IntSpan size, const Scalar& value, Options o) {
  return filled(fresh(size, o), value);
}

Tensor zeros(IntSpan size, std::optional<DType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin) {
  check_layout(layout, "zeros");
  return filled(size, 0, options(dtype, device, pin));
}
Tensor ones(IntSpan size, std::optional<DType> dtype, std::optional<Layout> layout,
            std::optional<Device> device, std::optional<bool> pin) {
  check_layout(layout, "ones");
  return filled(size, 1, options(dtype, device, pin));
}
Tensor full(IntSpan size, const Scalar& value, std::optional<DType> dtype,
            std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin) {
  check_layout(layout, "full");
  return filled(size, value, options(dtype ? dtype : value.dtype(), device, pin));
}

Tensor zeros_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin,
                  std::optional<MemoryFormat> format) {
  return filled(empty_like(self, dtype, layout, device, pin, format), 0);
}
Tensor ones_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin,
                 std::optional<MemoryFormat> format) {
  return filled(empty_like(self, dtype, layout, device, pin, format), 1);
}
Tensor full_like(const Tensor& self, const Scalar& value, std::optional<DType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin, std::optional<MemoryFormat> format) {
  return filled(empty_like(self, dtype, layout, device, pin, format), value);
}
Tensor new_zeros(const Tensor& self, IntSpan size, std::optional<DType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin) {
  return filled(new_empty(self, size, dtype, layout, device, pin), 0);
}
Tensor new_ones(const Tensor& self, IntSpan size, std::optional<DType> dtype,
                std::optional<Layout> layout, std::optional<Device> device,
                std::optional<bool> pin) {
  return filled(new_empty(self, size, dtype, layout, device, pin), 1);
}
Tensor new_full(const Tensor& self, IntSpan size, const Scalar& value, std::optional<DType> dtype,
                std::optional<Layout> layout, std::optional<Device> device,
                std::optional<bool> pin) {
  return filled(new_empty(self, size, dtype, layout, device, pin), value);
}
Tensor scalar_tensor(const Scalar& s, std::optional<DType> dtype, std::optional<Layout> layout,
                     std::optional<Device> device, std::optional<bool> pin) {
  check_layout(layout, "scalar_tensor");
  return filled({}, s, options(dtype, device, pin));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(empty_memory_format){
    .schema =
        "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "A tensor of the given sizes whose elements are whatever the memory held.",
    .forms = function | out,
    .out_name = "out",
    .flags = factory | nondeterministic,
    .any = typed_kernel<empty>,
};
OP(empty_strided){
    .schema =
        "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "
        "layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "An uninitialised tensor of the given sizes and strides.",
    .flags = factory | nondeterministic,
    .any = typed_kernel<empty_strided>,
};
OP(empty_permuted){
    .schema =
        "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
        "layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "An uninitialised dense tensor whose dimensions lie in memory in the given order, "
        "outermost first.",
    .flags = factory | nondeterministic,
    .any = typed_kernel<empty_permuted>,
};
OP(empty_like){
    .schema =
        "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "An uninitialised tensor of self's sizes.",
    .flags = factory | nondeterministic | handles_conj,
    .any = typed_kernel<empty_like>,
    .not_differentiable = names("self", "result"),
    .batch = batch::pointwise,
};
OP(new_empty){
    .schema =
        "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "An uninitialised tensor of self's dtype and device.",
    .forms = method,
    .flags = factory | nondeterministic | handles_conj,
    .any = typed_kernel<new_empty>,
    .not_differentiable = names("self", "result"),
    .batch = batch::sizes,
};
OP(new_empty_strided){
    .schema =
        "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
        "Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "An uninitialised tensor of self's dtype and device with the given strides.",
    .forms = method,
    .flags = factory | nondeterministic | handles_conj,
    .any = typed_kernel<new_empty_strided>,
    .not_differentiable = names("self", "result"),
    .batch = batch::sizes,
    .sizes = names("size", "stride"),
};
OP(zeros){
    .schema =
        "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A tensor of zeros.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = factory,
    .any = typed_kernel<zeros>,
};
OP(ones){
    .schema =
        "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A tensor of ones.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = factory,
    .any = typed_kernel<ones>,
};
OP(full){
    .schema =
        "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A tensor whose elements are all fill_value.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = factory,
    .any = typed_kernel<full>,
};
OP(zeros_like){
    .schema =
        "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "A tensor of zeros with self's sizes.",
    .composite = Composite::Explicit,
    .flags = factory | handles_conj,
    .any = typed_kernel<zeros_like>,
    .not_differentiable = names("self", "result"),
    .batch = batch::pointwise,
};
OP(ones_like){
    .schema =
        "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "A tensor of ones with self's sizes.",
    .composite = Composite::Explicit,
    .flags = factory | handles_conj,
    .any = typed_kernel<ones_like>,
    .not_differentiable = names("self", "result"),
    .batch = batch::pointwise,
};
OP(full_like){
    .schema =
        "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "A tensor of self's sizes whose elements are all fill_value.",
    .composite = Composite::Explicit,
    .flags = factory | handles_conj,
    .any = typed_kernel<full_like>,
    .not_differentiable = names("self", "result"),
    .batch = batch::pointwise,
};
OP(new_zeros){
    .schema =
        "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A tensor of zeros of self's dtype and device.",
    .forms = method,
    .composite = Composite::Explicit,
    .flags = factory | handles_conj,
    .any = typed_kernel<new_zeros>,
    .not_differentiable = names("self", "result"),
    .batch = batch::sizes,
};
OP(new_ones){
    .schema =
        "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A tensor of ones of self's dtype and device.",
    .forms = method,
    .composite = Composite::Explicit,
    .flags = factory | handles_conj,
    .any = typed_kernel<new_ones>,
    .not_differentiable = names("self", "result"),
    .batch = batch::sizes,
};
OP(new_full){
    .schema =
        "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "
        "Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "A tensor of self's dtype and device whose elements are all fill_value.",
    .forms = method,
    .composite = Composite::Explicit,
    .flags = factory | handles_conj,
    .any = typed_kernel<new_full>,
    .not_differentiable = names("self", "result"),
    .batch = batch::sizes,
};
OP(scalar_tensor){
    .schema =
        "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A 0-dim tensor of a number.",
    .composite = Composite::Explicit,
    .flags = factory,
    .any = typed_kernel<scalar_tensor>,
};
