#include "dispatch/call.h"

#include <algorithm>
#include <memory>

#include "core/allocator.h"
#include "core/autograd_meta.h"
#include "core/debug.h"
#include "core/random.h"
#include "dispatch/backend.h"
#include "dispatch/debug_print.h"
#include "dispatch/modes_watch.h"

namespace facula {

thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec"))) = {};
thread_local constinit DispatchMode* recorder_of_thread __attribute__((tls_model("initial-exec"))) =
    nullptr;
constinit std::atomic<int> forward_levels{0};

void add_forward_level(int by) {
  forward_levels.fetch_add(by);
  // A level may end on another thread than it began on.
  thread_state.forward_levels = std::max(0, thread_state.forward_levels + by);
}

void destroy(FunctionMode* m) {
  if (const ObjectHooks* h = object_hooks.load()) h->release(m->object);
  delete m;
}

namespace {

LayerSet factory_layer(const OpInfo& info, const Value* args) {
  LayerSet layers = backend_layer(thread_state.default_device.type);
  if (info.device_arg >= 0 && args[info.device_arg].tag == Tag::Device)
    layers = backend_layer(args[info.device_arg].device.type);
  const int at = info.layout_arg;
  if (at >= 0 && args[at].tag == Tag::Layout && args[at].layout != Layout::Strided &&
      kind_of_layout(args[at].layout)) [[unlikely]]
    layers |= Layer::Layout;
  return layers;
}

// A kernel that was put in at Autograd sees every call on tensors that autograd may follow, whether
// or not it follows these now: not those of inference mode, and none below autograd.
void add_own_layers(OpCall& c) {
  LayerSet own(c.op->own_layers.load(std::memory_order_relaxed));
  bool followed = false;
  auto look = [&](const Tensor& t) { followed |= t.defined() && !t->inference; };
  for (int i = 0; i < c.info->args; ++i) {
    if (c.args[i].is_tensor()) look(c.tensor(i));
    if (c.args[i].tag == Tag::TensorList) std::ranges::for_each(c.args[i].as_tensors(), look);
  }
  if (!followed || thread_state.inference) own -= Layer::Autograd;
  c.layers |= own - thread_state.exclude;
}

// A composite is expanded above autograd, where no layer would see that its out= cannot be
// followed.
void check_out_without_gradient(const OpCall& c) {
  if (!thread_state.grad_enabled || thread_state.exclude.has(Layer::Autograd)) return;
  if ((c.op->record->flags & out_follows) || !c.info->differentiable_results) return;
  auto has_history = [](const AutogradMeta* m) { return m && (m->requires_grad || m->grad_fn); };
  auto look = [&](const Tensor& t) {
    if (!t.defined() || !t->autograd) return;
    const Tensor& base = t->autograd->base;
    if (has_history(t->autograd) || (base.defined() && has_history(base->autograd)))
      refuse_out_gradient(c);
  };
  for (int i = 0; i < c.info->args; ++i) {
    if (c.args[i].is_tensor()) look(c.tensor(i));
    if (c.args[i].tag == Tag::TensorList) std::ranges::for_each(c.args[i].as_tensors(), look);
  }
}

// A layer that wants an implicit composite whole: one with a rule for it, or a registration.
bool wanted_whole(const OpCall& c) {
  const OpRecord& r = *c.op->record;
  if (c.layers.has(Layer::PreAutogradTrace)) return true;
  if (c.layers.has(Layer::Autocast) && autocast_class(c) != Autocast::None) return true;
  if (c.layers.has(Layer::Transforms) && r.batch) return true;
  if (c.layers.has(Layer::Layout) && c.op->layout_kernels.load(std::memory_order_relaxed))
    return true;
  for (uint32_t bits = c.layers.bits(); bits; bits &= bits - 1)
    if (c.op->slots[std::countr_zero(bits)].load(std::memory_order_relaxed)) return true;
  return false;
}

void dispatch(OpCall& c) {
  if (c.info->implicit && !wanted_whole(c)) {
    if (c.op->variant == Variant::Out) check_out_without_gradient(c);
    return run_composite(c);
  }
  while (true) {
    const Layer top = c.layers.highest();
    if (debug::prints(debug::Level::Layers)) [[unlikely]]
      print_layer(c, top);
    if (top < Layer::Layout) return run_backend(c, top);
    if (const Slot* s = c.op->slots[static_cast<int>(top)].load(std::memory_order_acquire)) {
      c.layers -= top;
      return s->function(s->context, c);
    }
    if (const LayerHandler handler = layer_handlers[static_cast<int>(top)]) return handler(c);
    c.layers -= top;
  }
}

}  // namespace

DeviceType autocast_type(const OpCall& c) {
  const LayerSet accelerators = (c.layers & backend_layers) - (LayerSet(Layer::CPU) | Layer::Meta);
  return accelerators.empty() ? DeviceType::CPU : device_type_of(accelerators.highest());
}

Autocast autocast_class(const OpCall& c) {
  const OpRecord& r = *c.op->record;
  const DeviceType type = autocast_type(c);
  if (!(thread_state.autocast.enabled >> autocast_slot(type) & 1)) return Autocast::None;
  if (type != DeviceType::CPU) return r.autocast;
  return c.layers.has(Layer::CPU) ? cpu_autocast(r) : Autocast::None;
}

LayerSet layers_of(const OpInfo& info, const Value* args) {
  LayerSet found;
  for (uint32_t bits = info.tensor_args | info.list_args; bits; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    if (args[i].tag == Tag::Tensor)
      found |= args[i].tensor->layers;
    else if (args[i].tag == Tag::TensorList)
      for (const Tensor& t : args[i].as_tensors())
        if (t.defined()) found |= t->layers;
  }
  if ((found & backend_layers).empty()) found |= factory_layer(info, args);
  const ThreadState& s = thread_state;
  // Forward mode passes through autograd whether or not graphs are recorded.
  const bool autograd = s.grad_enabled || s.forward_levels > 0;
  const LayerSet excluded = autograd ? s.exclude : s.exclude | Layer::Autograd;
  return (found | s.include) - excluded;
}

void call(const Operator& op, Value* args, Value* results) {
  OpCall c;
  c.op = &op;
  c.info = &op.info();
  c.args = args;
  c.results = results;
  c.layers = layers_of(*c.info, args);
  if (op.own_layers.load(std::memory_order_relaxed)) [[unlikely]]
    add_own_layers(c);
  if (debug::prints(debug::Level::Calls)) [[unlikely]]
    return print_call(c, dispatch);
  dispatch(c);
}

void redispatch(OpCall& c, Layer below) {
  c.layers = c.layers & LayerSet::below(below);
  dispatch(c);
}

void call_again(OpCall& c) {
  c.layers = layers_of(*c.info, c.args);
  if (c.op->own_layers.load(std::memory_order_relaxed)) [[unlikely]]
    add_own_layers(c);
  dispatch(c);
}

void push_mode(DispatchMode* m) {
  m->below = thread_state.modes;
  thread_state.modes = m;
  thread_state.include |= Layer::Modes;
}

DispatchMode* pop_mode() {
  DispatchMode* m = thread_state.modes;
  check(m != nullptr, "pop_mode(): the stack of dispatch modes is empty");
  thread_state.modes = m->below;
  if (!thread_state.modes) thread_state.include -= Layer::Modes;
  return m;
}

Value default_value(const Argument& a) {
  const Default& d = a.default_value;
  switch (d.kind) {
    case Default::Int: {
      if (a.type.kind == TypeKind::ScalarType) return pack(static_cast<DType>(d.i));
      if (a.type.kind == TypeKind::Layout) return pack(static_cast<Layout>(d.i));
      if (a.type.kind == TypeKind::MemoryFormat) return pack(static_cast<MemoryFormat>(d.i));
      if (a.type.kind == TypeKind::Float && !a.type.list)
        return Value::of_float(static_cast<double>(d.i));
      // int[2] stride=1 means the same number for each
      if (a.type.list) {
        static constexpr int64_t ones[] = {1, 1, 1, 1, 1}, zeros[] = {0, 0, 0, 0, 0};
        const size_t n = a.type.list_size > 0 ? static_cast<size_t>(a.type.list_size) : 1;
        if (d.i == 1) return pack(IntSpan(ones, n));
        if (d.i == 0) return pack(IntSpan(zeros, n));
        return pack(IntSpan(&d.i, 1));
      }
      return Value::of_int(d.i);
    }
    case Default::Float:
      return Value::of_float(d.d);
    case Default::Bool:
      return Value::of_bool(d.i != 0);
    case Default::Str:
      return pack(std::string_view(d.s));
    case Default::Word: {
      if (a.type.kind == TypeKind::MemoryFormat)
        return pack(d.s == "contiguous_format" ? MemoryFormat::Contiguous : MemoryFormat::Preserve);
      if (d.s == "Mean") return Value::of_int(1);
      if (d.s == "Sum") return Value::of_int(2);
      const DType t = dtype_by_name(d.s);
      return t == DType::Undefined ? pack(std::string_view(d.s)) : pack(t);
    }
    case Default::IntList:
      return pack(IntSpan(d.ints));
    case Default::FloatList:
      return pack(std::span<const double>(d.floats));
    case Default::EmptyList: {
      if (a.type.kind == TypeKind::Tensor) return pack(std::span<const Tensor>());
      if (a.type.kind == TypeKind::Float) return pack(std::span<const double>());
      return pack(IntSpan());
    }
    case Default::BoolList: {
      static constexpr bool truths[] = {true, true, true, true},
                            lies[] = {false, false, false, false};
      const bool first = !d.ints.empty() && d.ints[0];
      check(std::ranges::count(d.ints, d.ints.empty() ? 0 : d.ints[0]) ==
                static_cast<int64_t>(d.ints.size()),
            "argument '", a.name, "': a default list of bools that differ is not supported");
      return pack(std::span<const bool>(first ? truths : lies, std::min<size_t>(d.ints.size(), 4)));
    }
    default:
      return {};
  }
}

// --- calls that outlive their frame

constinit std::atomic<const ObjectHooks*> object_hooks{nullptr};

namespace {
template <class T>
const T* copy_array(const T* from, size_t n) {
  T* to = new T[n];
  std::copy_n(from, n, to);
  return to;
}
}  // namespace

namespace {
// Whether a copy of the value owns something: memory, or a count.
bool has_parts(const Value& v) {
  constexpr auto bit = [](Tag t) { return 1u << static_cast<int>(t); };
  constexpr uint32_t plain = bit(Tag::None) | bit(Tag::Int) | bit(Tag::Float) | bit(Tag::Bool) |
                             bit(Tag::DType) | bit(Tag::Layout) | bit(Tag::MemoryFormat) |
                             bit(Tag::Device);
  return !(plain >> static_cast<int>(v.tag) & 1);
}
}  // namespace

Value own_copy(const Value& v) {
  Value c = v;
  c.owned = false;
  switch (v.tag) {
    case Tag::Tensor:
      v.tensor->retain();
      break;
    case Tag::Storage:
      v.storage->retain();
      break;
    case Tag::Generator:
      v.generator->retain();
      break;
    case Tag::Complex:
      c.complex = new complex128(*v.complex);
      break;
    case Tag::Str:
      c.chars = copy_array(v.chars, v.length);
      break;
    case Tag::IntList:
      c.ints = copy_array(v.ints, v.length);
      break;
    case Tag::FloatList:
      c.doubles = copy_array(v.doubles, v.length);
      break;
    case Tag::BoolList:
      c.bools = copy_array(v.bools, v.length);
      break;
    case Tag::TensorList:
      c.tensors = copy_array(v.tensors, v.length);
      break;
    case Tag::ValueList:
    case Tag::Tuple:
    case Tag::Dict: {
      Value* to = new Value[v.length];
      for (uint32_t i = 0; i < v.length; ++i) to[i] = own_copy(v.values[i]);
      c.values = to;
      break;
    }
    case Tag::Object:
      if (const ObjectHooks* h = object_hooks.load()) h->retain(v.object);
      break;
    default:
      break;
  }
  return c;
}

void drop_copy(Value& v) {
  switch (v.tag) {
    case Tag::Tensor:
      Tensor(Ref<TensorImpl>::take(v.tensor)).reset();
      break;
    case Tag::Storage:
      Ref<Storage>::take(v.storage).reset();
      break;
    case Tag::Generator:
      Ref<Generator>::take(v.generator).reset();
      break;
    case Tag::Complex:
      delete v.complex;
      break;
    case Tag::Str:
      delete[] v.chars;
      break;
    case Tag::IntList:
      delete[] v.ints;
      break;
    case Tag::FloatList:
      delete[] v.doubles;
      break;
    case Tag::BoolList:
      delete[] v.bools;
      break;
    case Tag::TensorList:
      delete[] v.tensors;
      break;
    case Tag::ValueList:
    case Tag::Tuple:
    case Tag::Dict:
      for (uint32_t i = 0; i < v.length; ++i) drop_copy(const_cast<Value&>(v.values[i]));
      delete[] v.values;
      break;
    case Tag::Object:
      if (const ObjectHooks* h = object_hooks.load()) h->release(v.object);
      break;
    default:
      break;
  }
  v = Value();
}

SavedCall::SavedCall(const Operator& op, const Value* args, uint32_t keep)
    : op_(&op), size_(op.info().args) {
  args_ = size_ <= inline_args
              ? room()
              : static_cast<Value*>(cpu_allocate(static_cast<size_t>(size_) * sizeof(Value)));
  for (int i = 0; i < size_; ++i) {
    const bool tensor = args[i].tag == Tag::Tensor || args[i].tag == Tag::TensorList;
    if (tensor && !(keep >> i & 1))
      new (args_ + i) Value;
    else
      new (args_ + i) Value(has_parts(args[i]) ? own_copy(args[i]) : args[i]);
  }
}
SavedCall::SavedCall(SavedCall&& o) noexcept { *this = std::move(o); }
SavedCall& SavedCall::operator=(SavedCall&& o) noexcept {
  const bool ours_inline = args_ == room(), others_inline = o.args_ == o.room();
  std::swap(op_, o.op_);
  std::swap(args_, o.args_);
  std::swap(size_, o.size_);
  std::swap(room_, o.room_);
  if (others_inline) args_ = room();
  if (ours_inline) o.args_ = o.room();
  return *this;
}
SavedCall::~SavedCall() {
  for (int i = 0; i < size_; ++i)
    if (has_parts(args_[i])) drop_copy(args_[i]);
  if (args_ != room()) cpu_free(args_, static_cast<size_t>(size_) * sizeof(Value));
}

// --- for generated wrappers

Tensor call_tensor(const Operator& op, Value* args) {
  Results<1> r;
  call(op, args, r.slots);
  return take_tensor(r.slots[0]);
}
std::vector<Tensor> call_tensors(const Operator& op, Value* args) {
  Results<1> r;
  call(op, args, r.slots);
  return take_tensors(r.slots[0]);
}
void call_nothing(const Operator& op, Value* args) {
  Results<1> r;
  call(op, args, r.slots);
}

}  // namespace facula
