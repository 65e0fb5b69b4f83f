#include "core/interrupts.h"

namespace facula {

thread_local constinit Interrupts interrupts __attribute__((tls_model("initial-exec"))) = {};

namespace {
// About 50 ms in ticks of interrupt_clock(): the time stamp counter runs at 2 to 4 GHz, the other
// clock counts nanoseconds.
#if defined(__SSE2__)
constexpr uint64_t period = uint64_t{1} << 27;
#else
constexpr uint64_t period = 50'000'000;
#endif
}  // namespace

void detail::ask_for_interrupts() {
  if (interrupts.held > 0) return;
  interrupts.next = interrupt_clock() + period;
  interrupts.ask();
}

}  // namespace facula
