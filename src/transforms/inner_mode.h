// Modes that handle calls below tensor subclasses.
#pragma once
#include "dispatch/call.h"

namespace facula {

// A mode that does not see calls on subclasses with a __torch_dispatch__, but the calls that those
// make: what is recorded or functionalized is the work of the subclass.
struct InnerMode : DispatchMode {};

// For a scope, calls pass no layer but the modes, and not these either unless one is an InnerMode.
// Used for changes of tensors that a user does not see as operators.
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
