// Locks and fork(). A child process has only the thread that forked: a lock that another thread
// held would never be released there, and the data it guards might be half changed.
//
// Global locks are ForkSafeMutexes: fork() acquires all of them first, and releases them in parent
// and child. Locks that every object has (SpinLock and OwnedMutex in core/locks.h) are too many for
// that. They store the process generation of their holder, and a child treats a lock of an older
// generation as free.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

namespace facula {

// The lock order: a thread that holds one of these may acquire those below it in the list, never
// those above it. fork() acquires them in this order, so a thread that did otherwise could deadlock
// with it.
enum class ForkOrder : uint8_t {
  Generators,  // first: held while kernels draw
  Engine,
  ForwardMode,
  OperatorInfo,
  Operators,
  Registrations,
  Warnings,
  Devices,
  Threads,
  Python,
  Tangents,
  SharedMemory,
  Memory,  // last: everything allocates
};

// Functions to call around a fork, any of which may be null. Never destroyed.
class ForkHandler {
 public:
  using Step = void (*)(ForkHandler& self);
  constexpr ForkHandler(ForkOrder order, Step before, Step in_parent, Step in_child)
      : order_(order), before_(before), in_parent_(in_parent), in_child_(in_child) {}
  ForkHandler(const ForkHandler&) = delete;
  // Registers the handler; calls after the first do nothing.
  void enlist() noexcept {
    if (!enlisted_.load(std::memory_order_acquire)) [[unlikely]]
      enlist_now();
  }

 private:
  friend struct ForkHandlers;
  void enlist_now() noexcept;

  const ForkOrder order_;
  const Step before_, in_parent_, in_child_;
  std::atomic<bool> enlisted_{false};
  bool began_ = false;  // before_ was called for the fork in progress
  std::atomic<ForkHandler*> next_{nullptr};
};

// A global mutex, of static storage duration or never destroyed.
class ForkSafeMutex : private ForkHandler {
 public:
  constexpr explicit ForkSafeMutex(ForkOrder order) : ForkHandler(order, take, give, give) {}
  void lock() {
    enlist();
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  static void take(ForkHandler& h) { static_cast<ForkSafeMutex&>(h).mutex_.lock(); }
  static void give(ForkHandler& h) { static_cast<ForkSafeMutex&>(h).mutex_.unlock(); }

  std::mutex mutex_;
};

// 1 in the first process; each forked child adds one.
extern constinit std::atomic<uint32_t> fork_generation_now;
inline uint32_t fork_generation() { return fork_generation_now.load(std::memory_order_relaxed); }

}  // namespace facula
