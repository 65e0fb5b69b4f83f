// Locks that are members of many objects: small, and free in a forked child (core/fork.h).
#pragma once
#include <atomic>
#include <cstdint>

#include "core/fork.h"

namespace facula {

// For critical sections of a few instructions that call no other code.
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
  std::atomic<uint32_t> holder_{0};  // the fork generation of the process that holds it; 0: free
};

// A recursive mutex: may be held while other code runs.
class OwnedMutex {
 public:
  constexpr OwnedMutex() = default;
  OwnedMutex(const OwnedMutex&) = delete;
  void lock();
  bool try_lock();
  void unlock();

 private:
  std::atomic<uint64_t> owner_{0};  // fork generation and number of the thread; 0: free
  uint32_t depth_ = 0;              // how often the owner has locked it
};

}  // namespace facula
