// Tensors of the C interface: made, kept, asked.
#include "c_api/values.h"
#include "core/autograd_meta.h"
#include "core/threads.h"

using namespace facula;
using namespace facula::c_api;

size_t facula_dtype_size(int32_t dtype) {
  const bool known = dtype >= 0 && dtype < dtype_slots && name(static_cast<DType>(dtype));
  return known ? itemsize(static_cast<DType>(dtype)) : 0;
}

const char* facula_dtype_name(int32_t dtype) {
  return dtype >= 0 && dtype < dtype_slots ? name(static_cast<DType>(dtype)) : nullptr;
}

facula_status facula_device_parse(const char* text, facula_device* out) {
  return guarded([&] {
    *given(out, "device_parse", "an out argument") =
        to_c(parse_device(given(text, "device_parse", "a text")));
  });
}

facula_status facula_tensor_empty(int32_t ndim, const int64_t* sizes, int32_t dtype,
                                  facula_device device, facula_tensor* out) {
  return guarded([&] {
    constexpr const char* name = "facula_tensor_empty";
    given(out, name, "an out argument");
    *out = handed_over(empty_tensor(sizes_from(ndim, sizes, name), dtype_from(dtype, name),
                                    device_from(device, name)));
  });
}

facula_status facula_tensor_empty_strided(int32_t ndim, const int64_t* sizes,
                                          const int64_t* strides, int32_t dtype,
                                          facula_device device, facula_tensor* out) {
  return guarded([&] {
    constexpr const char* name = "facula_tensor_empty_strided";
    given(out, name, "an out argument");
    *out = handed_over(empty_strided_tensor(sizes_from(ndim, sizes, name),
                                            sizes_from(ndim, strides, name),
                                            dtype_from(dtype, name), device_from(device, name)));
  });
}

facula_status facula_tensor_from_blob(void* data, int32_t ndim, const int64_t* sizes,
                                      const int64_t* strides, int32_t dtype, facula_device device,
                                      void (*deleter)(void* context), void* context,
                                      facula_tensor* out) {
  return guarded([&] {
    constexpr const char* name = "facula_tensor_from_blob";
    given(out, name, "an out argument");
    const IntSpan n = sizes_from(ndim, sizes, name);
    const IntVec steps = strides ? IntVec(sizes_from(ndim, strides, name)) : contiguous_strides(n);
    const DType type = dtype_from(dtype, name);
    const Device on = device_from(device, name);
    check_value(!on.is_meta(), name, "(): tensors on meta have no memory");
    checked_numel(n);
    const int64_t reach = extent(n, steps);
    check_type(data || reach == 0, name, "(): expected memory; got a null pointer");
    int64_t bytes;
    check(!__builtin_mul_overflow(reach, static_cast<int64_t>(itemsize(type)), &bytes),
          "Storage size calculation overflowed with sizes=", str(n));
    // A storage without bytes first: should the geometry be refused, the memory stays the caller's.
    tensor_over(Storage::make({DeviceType::Meta, -1}, static_cast<size_t>(bytes)), type, 0, n,
                steps);
    *out = handed_over(
        tensor_over(Storage::external(on, data, static_cast<size_t>(bytes), context, deleter), type,
                    0, n, steps));
  });
}

facula_tensor facula_tensor_retain(facula_tensor t) {
  if (t) impl(t)->retain();
  return t;
}

void facula_tensor_release(facula_tensor t) {
  if (t) Ref<TensorImpl>::take(impl(t)).reset();
}

// These cannot fail: of a null handle they give what no tensor has.
int32_t facula_tensor_ndim(facula_tensor t) { return t ? impl(t)->ndim : 0; }
int64_t facula_tensor_numel(facula_tensor t) { return t ? impl(t)->numel : 0; }
const int64_t* facula_tensor_sizes(facula_tensor t) {
  return t ? impl(t)->sizes().data() : nullptr;
}
int64_t facula_tensor_storage_offset(facula_tensor t) { return t ? impl(t)->offset : 0; }
int32_t facula_tensor_dtype(facula_tensor t) {
  return t ? static_cast<int32_t>(impl(t)->dtype) : -1;
}
facula_device facula_tensor_device(facula_tensor t) {
  return t ? to_c(impl(t)->device) : facula_device{-1, -1};
}
uint32_t facula_tensor_version(facula_tensor t) { return t ? impl(t)->current_version() : 0; }

int32_t facula_tensor_is_contiguous(facula_tensor t) {
  return t && impl(t)->contiguous && !impl(t)->layers.has(Layer::Layout);
}

int32_t facula_tensor_requires_grad(facula_tensor t) {
  const AutogradMeta* m = t ? impl(t)->autograd : nullptr;
  return m && (m->requires_grad || m->grad_fn);
}

facula_status facula_tensor_strides(facula_tensor t, const int64_t** out) {
  return guarded([&] {
    const Tensor of = shared(t, "facula_tensor_strides");
    if (has_layout_kind(of)) strides_of(of);  // raises where the kind has none
    *given(out, "facula_tensor_strides", "an out argument") = of.strides().data();
  });
}

facula_status facula_tensor_data(facula_tensor t, void** out) {
  return guarded([&] {
    const Tensor of = shared(t, "facula_tensor_data");
    check(!has_layout_kind(of) || of->extension->kind->has_storage,
          "Cannot access data pointer of Tensor that doesn't have storage");
    *given(out, "facula_tensor_data", "an out argument") = of.data();
  });
}

facula_status facula_parallel_for(int64_t n, int64_t grain,
                                  facula_status (*body)(void* context, int64_t begin, int64_t end),
                                  void* context) {
  return guarded([&] {
    given(body, "facula_parallel_for", "a body");
    check_value(grain > 0, "facula_parallel_for(): expected a grain above 0; got ", grain);
    parallel_for(n, grain,
                 [&](int64_t begin, int64_t end) { run_callback(body, context, begin, end); });
  });
}
