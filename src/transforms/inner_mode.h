// Modes that deal in plain tensors.
#pragma once
#include "dispatch/call.h"

namespace facula {

// A mode that leaves calls on tensor subclasses with a __torch_dispatch__ to them, and handles what
// they call in turn: a program is recorded, or made free of changes, from what a subclass does.
struct InnerMode : DispatchMode {};

// For a scope, calls pass the modes and nothing else, and not even these where none of ours is
// among them: for changes of tensors that are no operators to a user.
class OnlyInnerModes {
 public:
  OnlyInnerModes() : exclude_(LayerSet(~0u) - (backend_layers | seen())) {}

 private:
  static LayerSet seen() {
    for (const DispatchMode* m = thread_state.modes; m; m = m->below)
      if (dynamic_cast<const InnerMode*>(m)) return Layer::Modes;
    return {};
  }
  const ExcludeLayers exclude_;
};

}  // namespace facula
