// Calls of operators from the binding itself, by name.
#pragma once
#include <initializer_list>

#include "dispatch/call.h"
#include "python.h"

namespace facula::python {

// As many result slots as the operator has: clearing eight would cost more than a small call.
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

// An operator that is looked up at first use; NotImplementedError when the build lacks it.
class NamedOperator {
 public:
  constexpr NamedOperator(const char* name, const char* overload = "")
      : name_(name), overload_(overload) {}
  const Operator& get();
  // Calls it; arguments that are left out at the end get their defaults.
  Tensor tensor(std::initializer_list<Value> args);
  void run(std::initializer_list<Value> args, Value* results);
  std::vector<Tensor> tensors(std::initializer_list<Value> args);

 private:
  const char* name_;
  const char* overload_;
  const Operator* op_ = nullptr;
};

// Whether a layer other than the backend, autograd and lazy bits must see reads of this tensor.
inline bool needs_operator(const Tensor& t) {
  constexpr LayerSet plain = backend_layers | Layer::Autograd | Layer::Conjugate | Layer::Negative;
  return !((t->layers | thread_state.include) - plain - thread_state.exclude).empty();
}
Scalar item_by_operator(const Tensor& t);

}  // namespace facula::python
