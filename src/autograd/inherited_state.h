// The state that a worker thread inherits from the thread it works for.
#pragma once
#include <memory>

#include "dispatch/call.h"

namespace facula {

// This class alone decides what is inherited: all of ThreadState - grad mode, modes, transforms,
// autocast, overrides, saved-tensor hooks - except autocast's cache of cast weights. Changes that
// the worker makes stay its own.
class InheritedState {
 public:
  // Copies the calling thread's state. That thread must outlive every use, since it owns the stacks
  // of modes and transforms.
  InheritedState();

  // Applies the state to another thread for a scope.
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
