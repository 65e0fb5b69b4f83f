#include "dispatch/layout.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "dispatch/backend.h"

namespace facula {
namespace {

constinit std::mutex registration;
constinit std::atomic<const Slot*> fallbacks[most_extension_kinds] = {};

// The tensor that decides: the first one of a kind, in the order of the arguments.
const ExtensionKind* kind_of(const OpCall& c) {
  for (int i = 0; i < c.info->args; ++i) {
    const Value& v = c.args[i];
    if (v.is_tensor() && has_layout_kind(v.as_tensor())) return v.tensor->extension->kind;
    if (v.tag != Tag::TensorList) continue;
    for (const Tensor& t : v.as_tensors())
      if (t.defined() && has_layout_kind(t)) return t->extension->kind;
  }
  // A factory is told the layout by an argument.
  const int at = c.info->layout_arg;
  return at >= 0 && c.args[at].tag == Tag::Layout ? kind_of_layout(c.args[at].layout) : nullptr;
}

const Slot* find_kernel(const Operator& op, const ExtensionKind& kind, DeviceType device) {
  const LayoutKernels* there = op.layout_kernels.load(std::memory_order_acquire);
  if (!there) return nullptr;
  const Slot* for_any = nullptr;
  for (const LayoutKernels::Row& r : there->rows) {
    if (r.kind != kind.id) continue;
    if (r.device == static_cast<int16_t>(device)) return r.slot;
    if (r.device == any_device && !for_any) for_any = r.slot;
  }
  return for_any;
}

// "SparseCPU", as PyTorch names the backend.
std::string backend_text(const ExtensionKind& kind, DeviceType device) {
  std::string name = str(Device{device, -1});
  if (device == DeviceType::Meta) {
    name = "Meta";
  } else {
    for (char& ch : name)
      if (ch >= 'a' && ch <= 'z') ch = static_cast<char>(ch - 'a' + 'A');
  }
  return (kind.dispatch_key ? kind.dispatch_key : kind.name) + name;
}

[[noreturn]] void no_kernel(const OpCall& c, const ExtensionKind& kind, DeviceType device) {
  throw Error(ErrorKind::NotImplemented, "Could not run '", c.op->name(),
              "' with arguments from the '", backend_text(kind, device),
              "' backend: no kernel is registered for layout ", layout_name(kind.layout), " (",
              kind.name, ") on ", str(Device{device, -1}));
}

// The kernel of a library for tensors on one device.
void run_checked(OpCall& c, const Slot& kernel) {
  check_devices(c);
  run_kernel(c, kernel);
}

// By way of the operator's base form and copy_, where the kind has kernels for both.
bool has_by_base(const OpCall& c, const ExtensionKind& kind, DeviceType device) {
  if (c.op->variant != Variant::Inplace && c.op->variant != Variant::Out) return false;
  static const Operator* copy = find_operator("aten", "copy_", "");
  const Operator* base = c.op->variant_of(Variant::Base);
  return base && copy && has_layout_kernel(*base, kind, device) &&
         has_layout_kernel(*copy, kind, device);
}

void publish(Operator& op, std::vector<LayoutKernels::Row> rows) {
  auto* next = rows.empty() ? nullptr : new LayoutKernels{std::move(rows)};
  op.layout_kernels.store(next, std::memory_order_release);  // the one before may be in use
}
std::vector<LayoutKernels::Row> rows_of(const Operator& op) {
  const LayoutKernels* there = op.layout_kernels.load(std::memory_order_acquire);
  return there ? there->rows : std::vector<LayoutKernels::Row>();
}

}  // namespace

LayoutRegistration put_in_layout(Operator& op, const ExtensionKind& kind, int16_t device,
                                 KernelFn function, void* context) {
  check(kind.id && kind.dispatch_key, "put_in_layout(): expected a registered kind that calls are ",
        "dispatched by; got ", kind.name);
  const Slot* slot = new Slot{.function = function, .context = context};
  std::lock_guard hold(registration);
  std::vector<LayoutKernels::Row> rows = rows_of(op);
  rows.insert(rows.begin(), {kind.id, device, slot});
  publish(op, std::move(rows));
  return {&op, kind.id, device, slot};
}

void take_out(const LayoutRegistration& r) {
  if (!r.op) return;
  std::lock_guard hold(registration);
  std::vector<LayoutKernels::Row> rows = rows_of(*r.op);
  std::erase_if(rows, [&](const LayoutKernels::Row& row) { return row.slot == r.slot; });
  publish(*r.op, std::move(rows));
}

void set_layout_fallback(const ExtensionKind& kind, KernelFn f, void* context) {
  check(kind.id != 0, "set_layout_fallback(): expected a registered kind; got ", kind.name);
  fallbacks[kind.id].store(f ? new Slot{.function = f, .context = context} : nullptr,
                           std::memory_order_release);
}

bool has_layout_kernel(const Operator& op, const ExtensionKind& kind, DeviceType device) {
  return find_kernel(op, kind, device) != nullptr;
}

void run_without_kernel(OpCall& c, const ExtensionKind& kind) {
  const DeviceType device = device_type_of((c.layers & backend_layers).highest());
  if (has_composite_kernel(*c.op) || has_by_base(c, kind, device)) return run_composite(c);
  no_kernel(c, kind, device);
}

void run_layout(OpCall& c) {
  const ExtensionKind* kind = kind_of(c);
  const LayerSet backends = c.layers & backend_layers;
  if (!kind || backends.empty()) {  // a tensor list whose tensors went, or a layout nobody makes
    c.layers -= Layer::Layout;
    return run_backend(c, c.layers.highest());
  }
  const DeviceType device = device_type_of(backends.highest());
  if (const Slot* s = find_kernel(*c.op, *kind, device)) return run_checked(c, *s);
  if (c.op->record->flags & any_layout) return run_backend(c, backends.highest());
  if (const Slot* s = fallbacks[kind->id].load(std::memory_order_acquire))
    return run_checked(c, *s);
  run_without_kernel(c, *kind);
}

}  // namespace facula
