// Kernels and rules put in at run time.
#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "core/fork.h"
#include "dispatch/backend.h"
#include "dispatch/call.h"
#include "dispatch/operator_text.h"

namespace facula {

// --- registrations: a stack per operator and layer; the top one is published

namespace {

struct Stacks {
  ForkSafeMutex lock{ForkOrder::Registrations};
  std::map<const std::atomic<const Slot*>*, std::vector<const Slot*>> of;
};
Stacks& stacks() {
  static auto* s = new Stacks;
  return *s;
}

const Slot* publish(std::atomic<const Slot*>& where, KernelFn f, void* context,
                    bool structured = false) {
  const Slot* slot = new Slot{.function = f, .context = context, .structured = structured};
  std::lock_guard hold(stacks().lock);
  auto& stack = stacks().of[&where];
  if (stack.empty()) stack.push_back(where.load());
  stack.push_back(slot);
  where.store(slot, std::memory_order_release);
  return slot;
}

// Takes a registration's slot out of one stack: that very slot, or the structured one of the same
// kernel that another variant has.
void retire(std::atomic<const Slot*>& where, const Registration& r) {
  std::lock_guard hold(stacks().lock);
  auto& stack = stacks().of[&where];
  const auto same = [&](const Slot* s) {
    return s == r.slot || (r.structured && s && s->structured && s->function == r.slot->function &&
                           s->context == r.slot->context);
  };
  const auto last = std::find_if(stack.rbegin(), stack.rend(), same);
  if (last != stack.rend()) stack.erase(std::next(last).base());
  where.store(stack.empty() ? nullptr : stack.back(), std::memory_order_release);
}

// The operator's base form and what writes its results elsewhere. What copies first calls the base.
template <class F>
void for_each_variant(Operator& op, F&& f) {
  for (Variant v : {Variant::Base, Variant::Inplace, Variant::Out})
    if (const Operator* o = op.variant_of(v)) f(const_cast<Operator&>(*o));
}

// Kernels at Autograd or Autocast: for calls on one backend, or for those that have none of these.
struct BackendSlots {
  Slot entry;  // leads here
  Layer layer;
  std::atomic<const Slot*> of[layer_count] = {};
  std::atomic<const Slot*> others{nullptr};
};

constexpr bool is_by_backend(Layer layer) {
  return layer == Layer::Autograd || layer == Layer::Autocast;
}

const Slot* slot_for(const BackendSlots& slots, LayerSet backends) {
  const Slot* own = nullptr;
  if (!backends.empty())
    own = slots.of[static_cast<int>(backends.highest())].load(std::memory_order_acquire);
  return own ? own : slots.others.load(std::memory_order_acquire);
}

void run_by_backend(void* context, OpCall& c) {
  const auto& slots = *static_cast<const BackendSlots*>(context);
  if (const Slot* s = slot_for(slots, c.layers & backend_layers)) return s->function(s->context, c);
  // As if nothing were registered.
  const LayerHandler handler = layer_handlers[static_cast<int>(slots.layer)];
  if (!handler) return redispatch(c, slots.layer);
  c.layers |= slots.layer;
  handler(c);
}

BackendSlots& backend_slots(Operator& op, Layer layer) {
  static constinit ForkSafeMutex lock{ForkOrder::Registrations};
  static auto* made = new std::map<std::pair<Operator*, Layer>, BackendSlots*>;
  std::lock_guard hold(lock);
  BackendSlots*& slots = (*made)[{&op, layer}];
  if (!slots) {
    slots = new BackendSlots{{}, layer};
    slots->entry = {.function = run_by_backend, .context = slots};
  }
  return *slots;
}

// The table is in force while it holds a kernel. A call on any tensor passes Autograd then.
void enter_table(Operator& op, Layer layer) {
  BackendSlots& slots = backend_slots(op, layer);
  bool any = slots.others.load() != nullptr;
  for (const auto& slot : slots.of) any |= slot.load() != nullptr;
  op.slots[static_cast<int>(layer)].store(any ? &slots.entry : nullptr, std::memory_order_release);
  if (layer == Layer::Autograd) op.own_layers.store(any ? LayerSet(layer).bits() : 0);
}

Registration put_in_table(Operator& op, Layer layer, std::atomic<const Slot*>& where, KernelFn f,
                          void* context) {
  const Registration r{&op, layer, false, false, publish(where, f, context), &where};
  enter_table(op, layer);
  return r;
}

}  // namespace

Registration put_in(Operator& op, Layer layer, KernelFn f, void* context) {
  if (is_by_backend(layer))
    return put_in_table(op, layer, backend_slots(op, layer).others, f, context);
  auto& where = op.slots[static_cast<int>(layer)];
  return {&op, layer, false, false, publish(where, f, context), &where};
}

Registration put_in_for(Operator& op, Layer layer, Layer backend, KernelFn f, void* context) {
  check(is_by_backend(layer), op,
        ": kernels by backend are possible at Autograd and Autocast alone");
  auto& where = backend_slots(op, layer).of[static_cast<int>(backend)];
  return put_in_table(op, layer, where, f, context);
}

Registration put_in_composite(Operator& op, KernelFn f, void* context) {
  auto& where = op.composite_slot;
  return {&op, Layer::CPU, true, false, publish(where, f, context), &where};
}

Registration put_in_structured(Operator& op, Layer backend, KernelFn f, void* context) {
  check(is_structured(*op.record), op,
        ": its record has no shape rule, by which results of a structured kernel are made");
  check(LayerSet(backend) == (LayerSet(backend) & backend_layers), op,
        ": a structured kernel is of a backend");
  Registration r{&op, backend, false, true};
  for_each_variant(op, [&](Operator& o) {
    r.slot = publish(o.slots[static_cast<int>(backend)], f, context, true);
  });
  return r;
}

const Slot* put_in_at(const Operator& op, Layer layer, Layer backend) {
  const Slot* slot = op.slots[static_cast<int>(layer)].load(std::memory_order_acquire);
  if (!slot || slot->function != run_by_backend) return slot;
  return slot_for(*static_cast<const BackendSlots*>(slot->context), LayerSet(backend));
}

void take_out(const Registration& r) {
  if (!r.op) return;
  if (r.structured)
    return for_each_variant(*r.op,
                            [&](Operator& o) { retire(o.slots[static_cast<int>(r.layer)], r); });
  retire(*r.where, r);
  if (!r.composite && is_by_backend(r.layer)) enter_table(*r.op, r.layer);
}

}  // namespace facula
