// Kinds of tensors that a library registers: its payload as an extension of facula's.
#include <atomic>
#include <string>

#include "c_api/calls.h"
#include "dispatch/layout.h"

// What callbacks of a kind append to.
struct facula_text_s {
  std::string& text;
};
struct facula_list_s {
  std::vector<facula::Tensor>& tensors;
};

namespace facula::c_api {
namespace {

const facula_kind_definition& definition_of(const ExtensionKind& kind) {
  return *static_cast<const facula_kind_definition*>(kind.context);
}

// A payload, let go of with the last header over it.
struct Payload : RefCounted {
  Payload(const facula_kind_definition& d, void* p) : definition(d), data(p) {}
  const facula_kind_definition& definition;
  void* const data;
};
void destroy(Payload* p) {
  if (p->definition.destroy) p->definition.destroy(p->definition.context, p->data);
  delete p;
}

// A handle for callbacks that get the tensor itself.
facula_tensor borrowed(const TensorImpl& t) { return handle(const_cast<TensorImpl*>(&t)); }

class LibraryExtension final : public Extension {
 public:
  LibraryExtension(const ExtensionKind& k, Ref<Payload> p) : Extension(k), payload_(std::move(p)) {}
  Extension* clone() const override { return new LibraryExtension(*this); }
  void* data() const { return payload_->data; }

  IntVec sizes(const TensorImpl& t) const override {
    return said().sizes ? list(said().sizes, t) : Extension::sizes(t);
  }
  IntVec strides(const TensorImpl& t) const override {
    return said().strides ? list(said().strides, t) : Extension::strides(t);
  }
  int64_t numel(const TensorImpl& t) const override {
    if (!said().numel) return Extension::numel(t);
    int64_t n = 0;
    run_callback(said().numel, said().context, borrowed(t), &n);
    return n;
  }
  std::string text(const TensorImpl& t) const override {
    std::string found;
    facula_text_s out{found};
    if (said().text) run_callback(said().text, said().context, borrowed(t), &out);
    return found;
  }
  std::vector<Tensor> parts(const TensorImpl& t) const override {
    if (!said().parts) return Extension::parts(t);
    std::vector<Tensor> found;
    facula_list_s out{found};
    run_callback(said().parts, said().context, borrowed(t), &out);
    return found;
  }

 private:
  using ListCallback = facula_status (*)(void* context, facula_tensor t, int64_t* out);
  const facula_kind_definition& said() const { return payload_->definition; }
  IntVec list(ListCallback ask, const TensorImpl& t) const {
    IntVec found(t.sizes());
    run_callback(ask, said().context, borrowed(t), found.data());
    return found;
  }
  Ref<Payload> payload_;
};

Tensor from_parts(const ExtensionKind& kind, IntSpan sizes, DType dtype, Device device,
                  const std::vector<Tensor>& parts) {
  const facula_kind_definition& d = definition_of(kind);
  facula_tensor made = nullptr;
  run_callback(d.from_parts, d.context, static_cast<int32_t>(sizes.size()), sizes.data(),
               static_cast<int32_t>(dtype), to_c(device),
               reinterpret_cast<const facula_tensor*>(parts.data()), parts.size(), &made);
  const Tensor t(Ref<TensorImpl>::take(impl(made)));
  check(t.defined(), kind.name, ": from_parts() gave no tensor");
  return t;
}

const ExtensionKind& kind_of(facula_kind kind, const char* function) {
  return *reinterpret_cast<const ExtensionKind*>(given(kind, function, "a kind"));
}

// Which kinds were registered here: those of facula's own code have no payload.
constinit std::atomic<bool> of_libraries[most_extension_kinds] = {};
const ExtensionKind& library_kind(facula_kind kind, const char* function) {
  const ExtensionKind& k = kind_of(kind, function);
  check_value(of_libraries[k.id].load(std::memory_order_acquire), function, "(): tensors of kind ",
              k.name, " have no payload: a library registers that");
  return k;
}

}  // namespace
}  // namespace facula::c_api

using namespace facula;
using namespace facula::c_api;

void facula_text_append(facula_text to, const char* chars, size_t length) {
  to->text.append(chars, length);
}

void facula_list_append(facula_list to, facula_tensor t) {
  to->tensors.push_back(t ? Tensor::share(impl(t)) : Tensor());
}

facula_status facula_kind_register(const facula_kind_definition* definition, facula_kind* out) {
  return guarded([&] {
    constexpr const char* name = "facula_kind_register";
    given(out, name, "an out argument");
    auto d = std::make_unique<facula_kind_definition>(read_struct(definition, name));
    check_value(!d->parts == !d->from_parts, name, "(): parts and from_parts go together");
    ExtensionKind kind;
    kind.name = given(d->name, name, "a name");
    kind.layout = register_layout(given(d->layout, name, "a layout"));
    kind.dispatch_key = given(d->dispatch_key, name, "a dispatch_key");
    if (d->impl_name) kind.impl_name = d->impl_name;
    kind.has_storage = false;
    kind.quantized = d->quantized != 0;
    kind.nested = d->nested != 0;
    if (d->from_parts) kind.from_parts = from_parts;
    kind.context = d.get();
    const ExtensionKind& registered = register_extension_kind(kind);
    of_libraries[registered.id].store(true, std::memory_order_release);
    d.release();  // the kind refers to it for good
    *out = reinterpret_cast<facula_kind>(&registered);
  });
}

facula_status facula_tensor_of_kind(facula_kind kind, void* payload, int32_t ndim,
                                    const int64_t* sizes, int32_t dtype, facula_device device,
                                    facula_tensor* out) {
  return guarded([&] {
    constexpr const char* name = "facula_tensor_of_kind";
    const ExtensionKind& k = library_kind(kind, name);
    auto kept = Ref<Payload>::take(new Payload(definition_of(k), payload));
    given(out, name, "an out argument");
    const IntSpan n = sizes_from(ndim, sizes, name);
    const DType type = dtype_from(dtype, name);
    const Device on = device_from(device, name);
    *out = handed_over(layout_tensor(new LibraryExtension(k, std::move(kept)), n, type, on));
  });
}

facula_kind facula_tensor_kind(facula_tensor t) {
  const bool of_kind = t && impl(t)->layers.has(Layer::Layout);
  return of_kind ? reinterpret_cast<facula_kind>(impl(t)->extension->kind) : nullptr;
}

facula_status facula_tensor_payload(facula_tensor t, facula_kind kind, void** out) {
  return guarded([&] {
    constexpr const char* name = "facula_tensor_payload";
    const ExtensionKind& k = library_kind(kind, name);
    check(facula_tensor_kind(given(t, name, "a tensor")) == kind, name,
          "(): expected a tensor of kind ", k.name);
    *given(out, name, "an out argument") =
        static_cast<const LibraryExtension*>(impl(t)->extension)->data();
  });
}

facula_status facula_kind_fallback(facula_kind kind, facula_kernel kernel, void* context) {
  return guarded([&] {
    set_layout_fallback(kind_of(kind, "facula_kind_fallback"), kernel ? run_kernel : nullptr,
                        kernel ? new KernelContext{kernel, context} : nullptr);
  });
}
