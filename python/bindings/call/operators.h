// Calls operators by name, for the binding's own use.
#pragma once
#include <span>

#include "bindings/module/python.h"
#include "dispatch/call.h"
#include "dispatch/modes_watch.h"

namespace facula::python {

// Result slots, of which only as many are initialised as the operator has results: that is faster
// than Results<8>.
struct ResultSlots {
  explicit ResultSlots(int n) : count(n) {
    for (int i = 0; i < n; ++i) new (slots + i) Value;
  }
  ~ResultSlots() {
    for (int i = 0; i < count; ++i)
      if (slots[i].owned) clear(slots[i]);
  }
  ResultSlots(const ResultSlots&) = delete;
  union {
    Value slots[8];
  };
  const int count;
};

// An operator that is looked up at its first use; NotImplementedError if the build lacks it.
class NamedOperator {
 public:
  constexpr NamedOperator(const char* name, const char* overload = "")
      : name_(name), overload_(overload) {}
  const Operator& get();
  // Calls it; arguments that are missing at the end get their defaults. Takes a braced list, which
  // is an array that the call may change.
  template <size_t N>
  Tensor tensor(Value (&&args)[N]) {
    return call_for_tensor(args);
  }
  template <size_t N>
  void run(Value (&&args)[N], Value* results) {
    call_with(args, results);
  }
  template <size_t N>
  std::vector<Tensor> tensors(Value (&&args)[N]) {
    ResultSlots r(get().info().results);
    call_with(args, r.slots);
    return take_tensors(r.slots[0]);
  }

 private:
  Tensor call_for_tensor(std::span<Value> args);
  void call_with(std::span<Value> args, Value* results);

  const char* name_;
  const char* overload_;
  const Operator* op_ = nullptr;
};

// Whether reading the tensor must go through an operator, because of layers such as vmap, modes or
// subclasses.
inline bool needs_operator(const Tensor& t) {
  constexpr LayerSet plain = backend_layers | Layer::Autograd | Layer::Conjugate | Layer::Negative;
  // Reading pending memory is all that a recorder has to see.
  const LayerSet included =
      modes_watch() ? thread_state.include : thread_state.include - LayerSet(Layer::Modes);
  return !((t->layers | included) - plain - thread_state.exclude).empty();
}
Scalar item_by_operator(const Tensor& t);

}  // namespace facula::python
