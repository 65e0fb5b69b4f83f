// Whether dispatch modes look on: what is fused or changed in place is no longer theirs to see.
#pragma once
#include "dispatch/call.h"

namespace facula {

// The recorder of this thread (graph/recorder.h), which only runs kernels later.
extern thread_local constinit DispatchMode* recorder_of_thread
    __attribute__((tls_model("initial-exec")));

// Whether a mode other than the recorder is on the stack.
inline bool modes_watch() {
  const DispatchMode* top = thread_state.modes;
  return top && (top != recorder_of_thread || top->below);
}

}  // namespace facula
