// Locks that every object of a kind has: a few bytes, and free in a forked child (core/fork.h).
#pragma once
#include <atomic>
#include <cstdint>

#include "core/fork.h"

namespace facula {

// Held for a few instructions, never while other code runs.
class SpinLock {
 public:
  constexpr SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  void lock() {
    uint32_t free = 0;
    if (!holder_.compare_exchange_strong(free, fork_generation(), std::memory_order_acquire))
        [[unlikely]]
      wait();
  }
  void unlock() { holder_.store(0, std::memory_order_release); }

 private:
  void wait();
  std::atomic<uint32_t> holder_{0};  // the generation of the process that took it; 0: free
};

// Held while other code runs, which may take it again on the same thread.
class OwnedMutex {
 public:
  constexpr OwnedMutex() = default;
  OwnedMutex(const OwnedMutex&) = delete;
  void lock();
  void unlock();

 private:
  std::atomic<uint64_t> owner_{0};  // generation of the process and number of the thread; 0: free
  uint32_t depth_ = 0;              // of the owner's
};

}  // namespace facula
