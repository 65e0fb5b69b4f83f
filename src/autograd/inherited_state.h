// What a thread that works for another takes over of that one's state.
#pragma once
#include <memory>

#include "dispatch/call.h"

namespace facula {

// The one place that decides it: workers of the engine and fresh threads of deep recursion take
// over all of ThreadState - grad mode, modes, transforms, autocast, overrides, hooks of saved
// tensors - and keep to themselves what they change of it. Only the casts that autocast remembers
// are each thread's own.
class InheritedState {
 public:
  // Of the calling thread, as it is now. That thread outlives every use: stacks of modes and
  // transforms stay its own.
  InheritedState();

  // In force on another thread, for a scope.
  class Scope {
   public:
    explicit Scope(const InheritedState& of);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    const ThreadState before_;
    const std::shared_ptr<SavedTensorState> saved_before_;
  };

 private:
  const ThreadState state_;
  const std::shared_ptr<SavedTensorState> saved_tensors_;
  const Ref<FunctionMode> function_modes_;
};

}  // namespace facula
