#include "core/extension.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "core/tensor.h"

namespace facula {
namespace {

constexpr const char* built_in_layouts[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                            "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
constexpr int first_registered = static_cast<int>(Layout::FirstRegistered);

constinit std::mutex registration;
constinit std::atomic<const char*> added_layouts[most_layouts - first_registered] = {};
// The registered kinds by id; id 0 means not registered.
constinit std::atomic<const ExtensionKind*> kinds[most_extension_kinds] = {};
constinit std::atomic<int> kind_count{1};

// Copies a text, since the library that registered it may be unloaded.
const char* kept(std::string_view text) {
  char* copy = new char[text.size() + 1];
  std::copy(text.begin(), text.end(), copy);
  copy[text.size()] = '\0';
  return copy;
}
const char* kept(const char* text) { return text ? kept(std::string_view(text)) : nullptr; }

}  // namespace

const char* layout_name(Layout layout) {
  const int i = static_cast<int>(layout);
  if (i >= 0 && i < static_cast<int>(std::size(built_in_layouts))) return built_in_layouts[i];
  if (i < first_registered || i >= most_layouts) return nullptr;
  return added_layouts[i - first_registered].load(std::memory_order_acquire);
}

Layout find_layout(std::string_view name) {
  for (int i = 0; i < most_layouts; ++i) {
    const char* known = layout_name(static_cast<Layout>(i));
    if (known && name == known) return static_cast<Layout>(i);
  }
  return Layout::Strided;
}

Layout register_layout(std::string_view name) {
  check(!name.empty(), "register_layout(): expected a name; got an empty one");
  std::lock_guard hold(registration);
  const Layout known = find_layout(name);
  if (known != Layout::Strided || name == "strided") return known;
  for (int i = first_registered; i < most_layouts; ++i) {
    auto& slot = added_layouts[i - first_registered];
    if (slot.load(std::memory_order_relaxed)) continue;
    slot.store(kept(name), std::memory_order_release);
    return static_cast<Layout>(i);
  }
  throw Error(ErrorKind::Runtime, "register_layout(): at most ", most_layouts - first_registered,
              " layouts can be registered; got one more, '", name, "'");
}

const ExtensionKind& register_extension_kind(const ExtensionKind& given) {
  check(given.name && *given.name, "register_extension_kind(): expected a name; got none");
  auto* kind = new ExtensionKind;
  std::memcpy(static_cast<void*>(kind), &given, std::min<size_t>(given.size, sizeof(given)));
  kind->size = sizeof(ExtensionKind);
  std::lock_guard hold(registration);
  const int id = kind_count.load(std::memory_order_relaxed);
  const bool taken = find_extension_kind(given.name) != nullptr;
  if (taken || id == most_extension_kinds) {
    delete kind;
    check(!taken, "register_extension_kind(): a kind named '", given.name,
          "' is registered already");
    throw Error(ErrorKind::Runtime, "register_extension_kind(): at most ", most_extension_kinds - 1,
                " kinds can be registered; got one more, '", given.name, "'");
  }
  kind->name = kept(kind->name);
  kind->impl_name = kept(kind->impl_name ? kind->impl_name : "TensorImpl");
  kind->dispatch_key = kept(kind->dispatch_key);
  kind->id = static_cast<uint8_t>(id);
  kinds[id].store(kind, std::memory_order_release);
  kind_count.store(id + 1, std::memory_order_release);
  return *kind;
}

const ExtensionKind* find_extension_kind(std::string_view name) {
  for (int i = 1; i < kind_count.load(std::memory_order_acquire); ++i)
    if (const ExtensionKind* k = kinds[i].load(std::memory_order_acquire); name == k->name)
      return k;
  return nullptr;
}

const ExtensionKind* kind_of_layout(Layout layout) {
  for (int i = 1; i < kind_count.load(std::memory_order_acquire); ++i)
    if (const ExtensionKind* k = kinds[i].load(std::memory_order_acquire);
        k->layout == layout && k->dispatch_key)
      return k;
  return nullptr;
}

// --- the defaults of Extension's functions

IntVec Extension::sizes(const TensorImpl& t) const { return IntVec(t.sizes()); }
IntVec Extension::strides(const TensorImpl& t) const {
  check(kind->has_storage, layout_name(t.layout), " tensors do not have strides");
  return IntVec(t.strides());
}
int64_t Extension::numel(const TensorImpl& t) const { return t.numel; }
std::string Extension::text(const TensorImpl&) const { return {}; }
std::vector<Tensor> Extension::parts(const TensorImpl&) const {
  throw Error(ErrorKind::NotImplemented, "copies and pickles of ", kind->name,
              " tensors: the kind does not say what they are made of");
}

Tensor layout_tensor(Extension* extension, IntSpan sizes, DType dtype, Device device) {
  TensorImpl* t = new_tensor_impl();
  Tensor owner(Ref<TensorImpl>::take(t));
  t->extension = extension;
  const ExtensionKind& kind = *extension->kind;
  check(kind.id && kind.dispatch_key, "layout_tensor(): expected an extension of a registered ",
        "kind that calls are dispatched by; got one of ", kind.name);
  t->set_checked(sizes);
  // It needs a storage of its own, though without bytes, since views are recognised by their
  // storage.
  t->storage = Storage::make({DeviceType::Meta, -1}, 0);
  t->dtype = dtype;
  t->device = with_index(device);
  t->layout = kind.layout;
  t->layers = LayerSet(backend_layer(device.type)) | Layer::Layout;
  return owner;
}

namespace {
const Extension* asked(const Tensor& t) { return has_layout_kind(t) ? t->extension : nullptr; }
}  // namespace

IntVec sizes_of(const Tensor& t) {
  const Extension* e = asked(t);
  return e ? e->sizes(*t.get()) : IntVec(t.sizes());
}
IntVec strides_of(const Tensor& t) {
  const Extension* e = asked(t);
  return e ? e->strides(*t.get()) : IntVec(t.strides());
}
int64_t numel_of(const Tensor& t) {
  const Extension* e = asked(t);
  return e ? e->numel(*t.get()) : t.numel();
}

const Ref<Storage>& storage_of(const Tensor& t) {
  const Extension* e = asked(t);
  check_kind(ErrorKind::NotImplemented, !e || e->kind->has_storage, "Cannot access storage of ",
             e ? e->kind->impl_name : "");
  return t->storage;
}

void check_strided(const Tensor& t, const char* what) {
  if (!t.defined() || !has_layout_kind(t)) return;
  throw Error(ErrorKind::NotImplemented, what, ": tensors of layout ", layout_name(t->layout), " (",
              t->extension->kind->name, ") are not supported; got one");
}

}  // namespace facula
