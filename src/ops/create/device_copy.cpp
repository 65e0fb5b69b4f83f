#include "ops/create/device_copy.h"

#include <algorithm>

#include "core/checked.h"
#include "core/device_allocator.h"
#include "core/device_table.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"

namespace facula {
namespace {

size_t byte_count(const Tensor& t) { return static_cast<size_t>(t.numel()) * t.itemsize(); }

// The elements as they lie in memory: without conjugate and negative bits.
Tensor raw(const Tensor& t) {
  if (!t->conj && !t->neg) return t;
  const Tensor plain = alias_tensor(t);
  plain->conj = plain->neg = false;
  return plain;
}
Tensor with_bits_of(const Tensor& t, const Tensor& of) {
  if (!of->conj && !of->neg) return t;
  const Tensor seen = alias_tensor(t);
  seen->conj = of->conj;
  seen->neg = of->neg;
  return seen;
}
bool same_bits(const Tensor& a, const Tensor& b) { return a->conj == b->conj && a->neg == b->neg; }

// Whether the bytes of one are the bytes of the other.
bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.is_contiguous() && b.is_contiguous() && a.dtype() == b.dtype() && same_bits(a, b) &&
         same_sizes(a.sizes(), b.sizes());
}

// After a copy between a device and host memory was given to a stream: it may be left there only
// where the host's memory stays as it is until then.
void finish_host_copy(Stream s, const void* host, bool non_blocking) {
  if (non_blocking && is_pinned(host)) return record_pinned_use(host, s);
  synchronize_stream(s);
}

void to_host(const Tensor& self, const Tensor& src, bool non_blocking) {
  const Stream s = current_stream(src.device());
  const Tensor flat = ops::contiguous(raw(src));
  if (same_bytes(self, with_bits_of(flat, src))) {
    copy_to_host(s, self.data(), flat.data(), byte_count(flat));
    return finish_host_copy(s, self.data(), non_blocking);
  }
  const Tensor host = empty_tensor(src.sizes(), src.dtype());
  copy_to_host(s, host.data(), flat.data(), byte_count(flat));
  synchronize_stream(s);
  cpu::copy(self, with_bits_of(host, src));
}

void from_host(const Tensor& self, const Tensor& src, bool non_blocking) {
  const Stream s = current_stream(self.device());
  const Tensor there =
      self.is_contiguous() ? self : empty_tensor(self.sizes(), self.dtype(), self.device());
  if (same_bytes(with_bits_of(there, self), src)) {
    copy_from_host(s, there.data(), src.data(), byte_count(src));
    finish_host_copy(s, src.data(), non_blocking);
  } else {
    const Tensor host = empty_tensor(self.sizes(), self.dtype());
    cpu::copy(with_bits_of(host, self), src);
    copy_from_host(s, there.data(), host.data(), byte_count(host));
    synchronize_stream(s);
  }
  if (!there.is_same(self)) copy_by_device(raw(self), there, false);
}

bool copy_by_kernel(const Tensor& self, const Tensor& src) {
  const Device d = self.device();
  const DeviceTable& table = running_table(d);
  if (!table.copy_strided) return false;
  IntVec from(self.sizes().size());  // strides of src, 0 where it is broadcast
  const size_t before = from.size() - src.sizes().size();
  for (size_t i = before; i < from.size(); ++i)
    from[i] = src.sizes()[i - before] == self.sizes()[i] ? src.strides()[i - before] : 0;
  StridedCopy copy{};
  copy.size = sizeof copy;
  copy.dims = static_cast<int32_t>(self.dim());
  copy.to = self.data();
  copy.from = src.data();
  copy.sizes = self.sizes().data();
  copy.to_strides = self.strides().data();
  copy.from_strides = from.data();
  copy.to_dtype = static_cast<int32_t>(self.dtype());
  copy.from_dtype = static_cast<int32_t>(src.dtype());
  copy.conjugate = self->conj != src->conj;
  copy.negate = self->neg != src->neg;
  const int code = table.copy_strided(d.index, &copy, stream_handle(current_stream(d)));
  if (code == FACULA_DEVICE_NOT_SUPPORTED) return false;
  check_device_code(code, d, "copy_strided");
  return true;
}

// The memory that a tensor's elements span, on the host: a tensor of the same geometry over it.
struct OnHost {
  OnHost(const Tensor& t, Stream s)
      : device(t.data()), span(empty_tensor(IntVec{extent(t.sizes(), t.strides())}, t.dtype())) {
    copy_to_host(s, span.data(), device, byte_count(span));
    synchronize_stream(s);
    tensor = with_bits_of(alias_tensor(span, t.sizes(), t.strides(), 0), t);
  }
  void put_back(Stream s) const {
    copy_from_host(s, device, span.data(), byte_count(span));
    synchronize_stream(s);
  }
  void* device;
  Tensor span, tensor;
};

void within(const Tensor& self, const Tensor& src) {
  const Stream s = current_stream(self.device());
  if (same_bytes(self, src) && memory_overlap(self, src) == Overlap::None)
    return copy_on_device(s, self.data(), src.data(), byte_count(self));
  if (copy_by_kernel(self, src)) return;
  const OnHost from(src, s), to(self, s);
  cpu::copy(to.tensor, from.tensor);
  to.put_back(s);
}

// Between two devices that are not the host: straight where their kind can, else by the host.
void across(const Tensor& self, const Tensor& src) {
  const Device to = self.device(), from = src.device();
  if (to.type == from.type && same_bits(self, src) && running_table(from).copy_peer) {
    const Tensor flat = ops::contiguous(ops::to(raw(src), self.dtype()));
    const bool plain = self.is_contiguous() && same_sizes(self.sizes(), flat.sizes());
    const Tensor there = plain ? self : empty_tensor(flat.sizes(), flat.dtype(), to);
    if (copy_to_peer(to, there.data(), from, flat.data(), byte_count(flat)))
      return plain ? void() : within(self, with_bits_of(there, self));
  }
  from_host(self, ops::_to_copy(src, {}, {}, Device{}), false);
}

}  // namespace

void copy_by_device(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.numel() == 0) return;
  if (self.device() == src.device()) return within(self, src);
  if (self.device().is_cpu()) return to_host(self, src, non_blocking);
  if (src.device().is_cpu()) return from_host(self, src, non_blocking);
  across(self, src);
}

bool fill_by_device(const Tensor& self, const Tensor& value) {
  if (self.numel() == 0) return true;
  if (!is_dense_non_overlapping(self.sizes(), self.strides())) return false;
  const auto* bytes = static_cast<const unsigned char*>(value.data());
  const bool one =
      std::all_of(bytes, bytes + value.itemsize(), [&](unsigned char b) { return b == bytes[0]; });
  return one &&
         set_device_bytes(current_stream(self.device()), self.data(), bytes[0], byte_count(self));
}

Tensor empty_pinned(IntSpan sizes, IntSpan strides, DType dtype) {
  const DeviceType type = accelerator_type();
  check(type != DeviceType::CPU, "Cannot access accelerator device when none is available.");
  checked_numel(sizes);
  const int64_t bytes =
      checked_mul(extent(sizes, strides), static_cast<int64_t>(itemsize(dtype)), "Storage size");
  void* data = allocate_pinned(type, static_cast<size_t>(bytes));
  return tensor_over(
      Storage::external(Device(), data, static_cast<size_t>(bytes), data, release_pinned), dtype, 0,
      sizes, strides);
}

}  // namespace facula
