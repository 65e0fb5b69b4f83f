// Interrupts: long-running work checks from time to time whether the user pressed Ctrl-C.
#pragma once
#include <cstdint>

#if defined(__SSE2__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace facula {

// The state of one thread. The binding sets `ask` on the thread that receives Python's signals.
struct Interrupts {
  void (*ask)() = nullptr;  // throws when the work is to be interrupted
  uint64_t next = 0;        // when to ask again, by interrupt_clock()
  int held = 0;             // open scopes that must not be interrupted (NoInterrupts)
};
extern thread_local constinit Interrupts interrupts __attribute__((tls_model("initial-exec")));

// A clock that takes only a few nanoseconds to read, in ticks.
inline uint64_t interrupt_clock() {
#if defined(__SSE2__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

namespace detail {
void ask_for_interrupts();
}

// Called between the parts of long work, on the thread that the operator was called on. It usually
// costs a few nanoseconds and really asks about every 50 ms. It may throw, and results are then
// left partly written.
inline void poll_interrupts() {
  if (interrupts.ask != nullptr && interrupt_clock() >= interrupts.next) [[unlikely]]
    detail::ask_for_interrupts();
}

// The same for loops with very short steps: reads the clock at every 4096th step.
class InterruptPoll {
 public:
  void step() {
    if (++steps_ % 4096 == 0) [[unlikely]]
      poll_interrupts();
  }

 private:
  uint32_t steps_ = 0;
};

// Turns interrupts off for a scope. Needed while a lock is held and kernels run: asking waits for
// the GIL, and the thread that has the GIL may be waiting for that lock.
class NoInterrupts {
 public:
  NoInterrupts() { ++interrupts.held; }
  ~NoInterrupts() { --interrupts.held; }
  NoInterrupts(const NoInterrupts&) = delete;
};

}  // namespace facula
