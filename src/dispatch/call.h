// The call of an operator: from arguments to results through the layers.
#pragma once
#include <initializer_list>
#include <tuple>

#include "dispatch/operator.h"

namespace facula {

// The state of one call. `size` and `version` come first: a plug-in may be older or newer.
struct OpCall {
  uint16_t size = sizeof(OpCall);
  uint16_t version = 1;
  LayerSet layers;  // still to run
  const Operator* op;
  const OpInfo* info;
  Value* args;                       // as many as info->args
  Value* results;                    // as many as info->results
  DType compute = DType::Undefined;  // set by the meta rule where it differs from the results'
#ifdef FACULA_RECORD_VARIANT  // behind what kernels read, which both builds of `make test-abi`
                              // share
  uint64_t of_a_later_build[2] = {};
#endif
  uint8_t step = 0;  // used by layers that re-enter

  const Value& arg(int i) const { return args[i]; }
  const Tensor& tensor(int i) const { return args[i].as_tensor(); }
};

// The type of device whose autocasting a call is under: its accelerator's, else the CPU.
DeviceType autocast_type(const OpCall& c);
// What autocast does to this call: nothing where it is off for that type, and nothing on meta.
Autocast autocast_class(const OpCall& c);

// --- state of the thread

struct DispatchMode;
struct Interpreter;
struct NodeWatcher;

struct SavedTensorState;
// Casts of weights that autocast keeps.
struct CastCache {
  virtual ~CastCache() = default;
};

// One of a stack of objects of the language above. Threads share the lower part of a stack: a link
// never changes once it is made.
struct FunctionMode : RefCounted {
  FunctionMode(void* o, Ref<FunctionMode> b) : object(o), below(std::move(b)) {}
  void* const object;  // owned, by the rules of ObjectHooks
  const Ref<FunctionMode> below;
};
void destroy(FunctionMode* m);

// Python's __torch_function__ (python/bindings/modes/overrides.h).
struct OverrideState {
  bool subclass_enabled = true;   // off within DisableTorchFunctionSubclass
  bool all_enabled = true;        // off within DisableTorchFunction
  int depth = 0;                  // of the stack of modes
  FunctionMode* modes = nullptr;  // its top, counted
};

// A place for each type of device that can autocast: the CPU, then the kinds of core/device.h.
inline constexpr int autocast_types = 1 + device_kinds;
inline int autocast_slot(DeviceType t) { return t == DeviceType::CPU ? 0 : 1 + device_kind(t); }

struct AutocastState {
  uint32_t enabled = 0;  // a bit for each slot
  bool cache_enabled = true;
  // The lower precision; float16 on accelerators unless set otherwise.
  DType dtype[autocast_types] = {DType::BFloat16, DType::Float16, DType::Float16,
                                 DType::Float16,  DType::Float16, DType::Float16};
};
static_assert(autocast_types == 6);

// All that a call depends on beside its arguments. Plain data: it owns nothing, and what threads
// take over of each other is InheritedState's to say (autograd/inherited_state.h).
struct ThreadState {
  LayerSet include, exclude;
  bool grad_enabled = true;
  bool inference = false;
  bool forward_grad_enabled = true;
  bool multithreading = true;         // backward passes may use several threads
  bool keeps_gradient_layout = true;  // gradients of leaves get the strides of their leaf
  bool computing_tangent = false;     // of the level in force: what runs now has no tangent
  int forward_levels = 0;             // levels of forward mode that this thread has on
  DispatchMode* modes = nullptr;      // top of the stack
  DispatchMode* pre_autograd_modes = nullptr;  // of those above autograd
  Interpreter* interpreters = nullptr;         // top of the stack of function transforms
  NodeWatcher* node_watchers = nullptr;        // the innermost (autograd/node_watch.h)
  SavedTensorState* saved_tensors = nullptr;   // hooks (autograd/saved_tensor.h)
  CastCache* cast_cache = nullptr;             // of autocast (transforms/autocast.cpp)
  OverrideState overrides;
  int grad_level = 0;  // whose autograd state is in force; 0 is the user's
  Device default_device;
  AutocastState autocast;
};
extern thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec")));

// Levels of forward mode that are on, in all threads: dual levels and jvp transforms.
extern constinit std::atomic<int> forward_levels;
// Counts a level of this thread in, or out.
void add_forward_level(int by);

// Restores the layers' part of the thread's state on the way out.
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
// Operators called while this lives record nothing: the work is below autograd.
class BelowAutograd {
 public:
  BelowAutograd() : guard_(Layer::Autograd) {}

 private:
  ExcludeLayers guard_;
};

// A mode on the stack sees every call that reaches it. handle() runs with this mode and those
// above it taken off; it may call the operator again, which goes on to the modes below.
struct DispatchMode {
  virtual ~DispatchMode() = default;
  virtual void handle(OpCall& call) = 0;
  DispatchMode* below = nullptr;
};
void push_mode(DispatchMode* m);
DispatchMode* pop_mode();

// --- calling

// Calls an operator from the top. `args` has all arguments (defaults filled in); results receive
// owned values.
void call(const Operator& op, Value* args, Value* results);
// Goes on below the given layer with the same call.
void redispatch(OpCall& c, Layer below);
// Starts again from the top with the layer set computed anew (arguments may have been replaced).
void call_again(OpCall& c);
LayerSet layers_of(const OpInfo& info, const Value* args);

// Generic handlers of layers, wired by the library that has them all; null: nothing to do there.
using LayerHandler = void (*)(OpCall&);
extern const LayerHandler layer_handlers[layer_count];

// Runs an operator's composite kernel: it calls other operators.
void run_composite(OpCall& c);
// Whether the operator has a kernel that any device can use by calling other operators.
bool has_composite_kernel(const Operator& op);

// Fills defaults for arguments that are missing at the end or marked so; `given` values stay.
// Lists point into the schema.
Value default_value(const Argument& a);

// Bookkeeping of views made by `call`'s results, from its schema.
void note_views(OpCall& c);

// --- a call that outlives its frame

// Owns copies of arguments; lists and strings are copied too.
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
  Value* args_ = nullptr;  // in room_, or allocated
  int size_ = 0;
  alignas(Value) std::byte room_[inline_args * sizeof(Value)];
};
// Copies one value into an owning one, and lets it go. Objects are kept by the binding's hooks.
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
