// Long work asks from time to time whether the user wants it to end, as by Ctrl-C.
#pragma once
#include <cstdint>

#if defined(__SSE2__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace facula {

// Of one thread. The binding sets `ask` for the thread that Python hands signals to.
struct Interrupts {
  void (*ask)() = nullptr;  // throws where the work is to end
  uint64_t next = 0;        // the time to ask again
  int held = 0;             // scopes that must not be left halfway, or that hold a lock
};
extern thread_local constinit Interrupts interrupts __attribute__((tls_model("initial-exec")));

// Ticks of a clock that costs some nanoseconds to read.
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

// To be called between the parts of long work, by the thread that was called: some nanoseconds, and
// the question itself about every 50 ms. It may throw: then the call ends with what it has written
// so far.
inline void poll_interrupts() {
  if (interrupts.ask != nullptr && interrupt_clock() >= interrupts.next) [[unlikely]]
    detail::ask_for_interrupts();
}

// The same for steps of a few nanoseconds: looks at the clock every 4096th time.
class InterruptPoll {
 public:
  void step() {
    if (++steps_ % 4096 == 0) [[unlikely]]
      poll_interrupts();
  }

 private:
  uint32_t steps_ = 0;
};

// Nobody asks within this scope. Whoever holds a lock while kernels run needs it: a thread that has
// the GIL may wait for that lock, while asking waits for the GIL.
class NoInterrupts {
 public:
  NoInterrupts() { ++interrupts.held; }
  ~NoInterrupts() { --interrupts.held; }
  NoInterrupts(const NoInterrupts&) = delete;
};

}  // namespace facula
