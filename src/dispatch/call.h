// The call of an operator: from arguments to results through the layers.
#pragma once
#include <initializer_list>
#include <tuple>

#include "dispatch/operator.h"

namespace facula {

// The state of one call. It begins with `size` and `version`, since a plug-in may have been built
// against another version.
struct OpCall {
  uint16_t size = sizeof(OpCall);
  uint16_t version = 1;
  LayerSet layers;  // that are still to run
  const Operator* op;
  const OpInfo* info;
  Value* args;                       // as many as info->args
  Value* results;                    // as many as info->results
  DType compute = DType::Undefined;  // set by the meta rule if it differs from the results' dtype
#ifdef FACULA_RECORD_VARIANT  // behind what kernels read, which both builds of `make test-abi`
                              // share
  uint64_t of_a_later_build[2] = {};
#endif
  uint8_t step = 0;  // used by layers that re-enter

  const Value& arg(int i) const { return args[i]; }
  const Tensor& tensor(int i) const { return args[i].as_tensor(); }
};

// The device type whose autocast state applies to a call: that of its accelerator, else the CPU.
DeviceType autocast_type(const OpCall& c);
// What autocast does to this call: None where it is off for that device type, and on meta.
Autocast autocast_class(const OpCall& c);

// --- state of the thread

struct DispatchMode;
struct Interpreter;
struct NodeWatcher;

struct SavedTensorState;
// The cache of weights that autocast has cast.
struct CastCache {
  virtual ~CastCache() = default;
};

// One Python object on the stack of __torch_function__ modes. Links never change once they are
// made, so that threads can share the lower part of a stack.
struct FunctionMode : RefCounted {
  FunctionMode(void* o, Ref<FunctionMode> b) : object(o), below(std::move(b)) {}
  void* const object;  // owned, through ObjectHooks
  const Ref<FunctionMode> below;
};
void destroy(FunctionMode* m);

// Python's __torch_function__ (python/bindings/modes/overrides.h).
struct OverrideState {
  bool subclass_enabled = true;   // false within DisableTorchFunctionSubclass
  bool all_enabled = true;        // false within DisableTorchFunction
  int depth = 0;                  // of the stack of modes
  FunctionMode* modes = nullptr;  // the top of the stack, counted
};

// Autocast slots: 0 is the CPU, then the device kinds of core/device.h.
inline constexpr int autocast_types = 1 + device_kinds;
inline int autocast_slot(DeviceType t) { return t == DeviceType::CPU ? 0 : 1 + device_kind(t); }

struct AutocastState {
  uint32_t enabled = 0;  // one bit for each slot
  bool cache_enabled = true;
  // The lower precision; float16 on accelerators unless set otherwise.
  DType dtype[autocast_types] = {DType::BFloat16, DType::Float16, DType::Float16,
                                 DType::Float16,  DType::Float16, DType::Float16};
};
static_assert(autocast_types == 6);

// Everything besides its arguments that a call depends on. Plain data that owns nothing. What other
// threads take over of it is decided in InheritedState (autograd/inherited_state.h).
struct ThreadState {
  LayerSet include, exclude;
  bool grad_enabled = true;
  bool inference = false;
  bool forward_grad_enabled = true;
  bool multithreading = true;         // backward passes may use several threads
  bool keeps_gradient_layout = true;  // gradients of leaves get the strides of their leaf
  bool computing_tangent = false;     // calls made while computing a tangent get none themselves
  int forward_levels = 0;             // forward-mode levels that this thread has entered
  DispatchMode* modes = nullptr;      // top of the stack
  DispatchMode* pre_autograd_modes = nullptr;  // top of the stack of modes above autograd
  Interpreter* interpreters = nullptr;         // top of the stack of function transforms
  NodeWatcher* node_watchers = nullptr;        // the innermost one (autograd/node_watch.h)
  SavedTensorState* saved_tensors = nullptr;   // hooks (autograd/saved_tensor.h)
  CastCache* cast_cache = nullptr;             // of autocast (transforms/autocast.cpp)
  OverrideState overrides;
  int grad_level = 0;  // the grad transform whose autograd state is used; 0 outside of any
  Device default_device;
  AutocastState autocast;
};
extern thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec")));

// The number of forward-mode levels (dual levels and jvp transforms) of all threads.
extern constinit std::atomic<int> forward_levels;
// Adds to the count of this thread and of all threads.
void add_forward_level(int by);

// Restores the thread's included and excluded layers at the end of a scope.
class StateGuard {
 public:
  StateGuard() : include_(thread_state.include), exclude_(thread_state.exclude) {}
  ~StateGuard() {
    thread_state.include = include_;
    thread_state.exclude = exclude_;
  }
  StateGuard(const StateGuard&) = delete;

 private:
  LayerSet include_, exclude_;
};
class ExcludeLayers {
 public:
  explicit ExcludeLayers(LayerSet l) { thread_state.exclude |= l; }

 private:
  StateGuard guard_;
};
class GradMode {
 public:
  explicit GradMode(bool on) : before_(thread_state.grad_enabled) {
    thread_state.grad_enabled = on;
  }
  ~GradMode() { thread_state.grad_enabled = before_; }
  GradMode(const GradMode&) = delete;

 private:
  bool before_;
};
// In its scope operators run below autograd and record no nodes.
class BelowAutograd {
 public:
  BelowAutograd() : guard_(Layer::Autograd) {}

 private:
  ExcludeLayers guard_;
};

// A mode on the stack handles every call that reaches it. During handle() this mode and those above
// it are off the stack, so an operator that it calls goes to the modes below.
struct DispatchMode {
  virtual ~DispatchMode() = default;
  virtual void handle(OpCall& call) = 0;
  DispatchMode* below = nullptr;
};
void push_mode(DispatchMode* m);
DispatchMode* pop_mode();

// --- calling

// Calls an operator, beginning with its highest layer. `args` has all arguments, with defaults
// filled in; `results` receive owned values.
void call(const Operator& op, Value* args, Value* results);
// Continues the same call below the given layer.
void redispatch(OpCall& c, Layer below);
// Begins the call again with a newly computed layer set, after arguments were replaced.
void call_again(OpCall& c);
LayerSet layers_of(const OpInfo& info, const Value* args);

// The handler of each layer, for operators without a kernel of their own there. Null: the layer is
// skipped.
using LayerHandler = void (*)(OpCall&);
extern const LayerHandler layer_handlers[layer_count];

// Runs an operator's composite kernel, one that calls other operators.
void run_composite(OpCall& c);
// Whether the operator has a composite kernel.
bool has_composite_kernel(const Operator& op);

// The default of an argument as a Value; lists and texts point into the schema.
Value default_value(const Argument& a);

// Records which results are views of which arguments, as the schema says.
void note_views(OpCall& c);

// --- a call that is kept

// Owns copies of the arguments of a call, with their lists and strings.
class SavedCall {
 public:
  SavedCall() {}
  SavedCall(const Operator& op, const Value* args, uint32_t keep_tensors = ~0u);
  SavedCall(SavedCall&& o) noexcept;
  SavedCall& operator=(SavedCall&&) noexcept;
  SavedCall(const SavedCall&) = delete;
  ~SavedCall();
  const Operator* op() const { return op_; }
  Value* args() { return args_; }
  const Value* args() const { return args_; }
  int size() const { return size_; }

 private:
  static constexpr int inline_args = 4;
  Value* room() { return reinterpret_cast<Value*>(room_); }

  const Operator* op_ = nullptr;
  Value* args_ = nullptr;  // in room_, or on the heap
  int size_ = 0;
  alignas(Value) std::byte room_[inline_args * sizeof(Value)];
};
// Makes an owning copy of a value, and frees such a copy. Python objects are counted through the
// binding's ObjectHooks.
Value own_copy(const Value& v);
void drop_copy(Value& v);
struct ObjectHooks {
  void (*retain)(void*);
  void (*release)(void*);
};
extern std::atomic<const ObjectHooks*> object_hooks;

// --- used by generated wrappers

Tensor call_tensor(const Operator& op, Value* args);
std::vector<Tensor> call_tensors(const Operator& op, Value* args);
void call_nothing(const Operator& op, Value* args);
template <size_t N, size_t... I>
auto call_tuple_impl(const Operator& op, Value* args, std::index_sequence<I...>) {
  Results<N> r;
  call(op, args, r.slots);
  return std::make_tuple(((void)I, take_tensor(r.slots[I]))...);
}
template <size_t N>
auto call_tuple(const Operator& op, Value* args) {
  return call_tuple_impl<N>(op, args, std::make_index_sequence<N>());
}

}  // namespace facula
