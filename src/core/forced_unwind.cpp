#include "core/forced_unwind.h"

#include <unistd.h>
#include <unwind.h>

#include <cstdint>

namespace facula {

constinit std::atomic<bool (*)()> must_not_unwind{nullptr};

void stop_this_thread() {
  for (;;) pause();
}

}  // namespace facula

// The personality routine that the compiler refers to in every C++ frame, and the one of the C++
// runtime, which the linker's --wrap renames.
extern "C" {
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions, uint64_t kind,
                                                _Unwind_Exception* error, _Unwind_Context* context);
[[gnu::visibility("default")]] _Unwind_Reason_Code __wrap___gxx_personality_v0(
    int version, _Unwind_Action actions, uint64_t kind, _Unwind_Exception* error,
    _Unwind_Context* context) {
  if (actions & _UA_FORCE_UNWIND) {
    const auto stops = facula::must_not_unwind.load(std::memory_order_acquire);
    if (stops && stops()) facula::stop_this_thread();
  }
  return __real___gxx_personality_v0(version, actions, kind, error, context);
}
}
