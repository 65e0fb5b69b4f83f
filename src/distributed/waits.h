// Waiting that Ctrl-C ends.
#pragma once
#include <algorithm>
#include <chrono>

#include "core/interrupts.h"

namespace facula::distributed {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Timeouts come from callers: one of many years must not overflow the clock.
inline Deadline deadline_after(int64_t milliseconds) {
  constexpr int64_t ten_years = int64_t{10} * 365 * 24 * 3600 * 1000;
  return Clock::now() + std::chrono::milliseconds(std::clamp<int64_t>(milliseconds, 0, ten_years));
}

// Throws if this thread receives signals and one has come.
inline void check_interrupts() {
  if (interrupts.ask != nullptr && interrupts.held == 0) interrupts.ask();
}

// How long to wait at once: until the deadline, but no longer than a user waits after Ctrl-C.
inline std::chrono::milliseconds next_wait(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return std::clamp(left, std::chrono::milliseconds(0), std::chrono::milliseconds(100));
}

}  // namespace facula::distributed
