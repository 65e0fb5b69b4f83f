#include "autograd/inherited_state.h"

#include "autograd/saved_tensor.h"

namespace facula {

InheritedState::InheritedState()
    : state_(thread_state),
      saved_tensors_(saved_tensor_state()),
      function_modes_(Ref<FunctionMode>::share(thread_state.overrides.modes)) {}

InheritedState::Scope::Scope(const InheritedState& of)
    : before_(thread_state), saved_before_(own_saved_tensor_state()) {
  thread_state = of.state_;
  thread_state.cast_cache = nullptr;
  thread_state.overrides.modes = Ref<FunctionMode>(of.function_modes_).leak();
  // Copied for each use, since several workers may use the state at once.
  set_saved_tensor_state(copied(of.saved_tensors_));
}

InheritedState::Scope::~Scope() {
  delete thread_state.cast_cache;
  Ref<FunctionMode>::take(thread_state.overrides.modes).reset();
  thread_state = before_;
  set_saved_tensor_state(saved_before_);
}

}  // namespace facula
