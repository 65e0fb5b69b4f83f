#include "core/locks.h"

#include <thread>

namespace facula {
namespace {

constinit std::atomic<uint32_t> threads_numbered{0};

// Identifies this thread as the owner of a mutex.
uint64_t own_mark() {
  thread_local constinit uint32_t number = 0;
  if (number == 0) number = threads_numbered.fetch_add(1, std::memory_order_relaxed) + 1;
  return uint64_t{fork_generation()} << 32 | number;
}

}  // namespace

void SpinLock::wait() {
  for (int spins = 0;; ++spins) {
    const uint32_t now = fork_generation();
    uint32_t seen = holder_.load(std::memory_order_relaxed);
    // A holder from before a fork is a thread that does not exist in this process.
    if (seen != now && holder_.compare_exchange_weak(seen, now, std::memory_order_acquire)) return;
    if (spins > 64) std::this_thread::yield();
  }
}

bool OwnedMutex::try_lock() {
  const uint64_t own = own_mark();
  uint64_t seen = owner_.load(std::memory_order_relaxed);
  while (seen != own) {
    const bool free = seen == 0 || seen >> 32 != own >> 32;
    if (!free) return false;
    if (!owner_.compare_exchange_weak(seen, own, std::memory_order_acquire)) continue;
    depth_ = 0;
    break;
  }
  ++depth_;
  return true;
}

void OwnedMutex::lock() {
  while (!try_lock())
    if (const uint64_t seen = owner_.load(std::memory_order_relaxed))
      owner_.wait(seen, std::memory_order_relaxed);
}

void OwnedMutex::unlock() {
  if (--depth_ > 0) return;
  owner_.store(0, std::memory_order_release);
  owner_.notify_one();
}

}  // namespace facula
