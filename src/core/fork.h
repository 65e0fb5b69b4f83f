// What a fork does to the library's locks: a child has the forking thread alone, so a lock that
// another thread held would never be let go, and what it guarded might be half changed.
//
// Two rules, one for each kind of lock. A lock of the whole process is a ForkSafeMutex: a fork
// takes all of them first, so that nothing they guard is half changed, and lets go of them on both
// sides. Locks that every object has (SpinLock, OwnedMutex of core/locks.h) are too many for that:
// they know the generation of their holder, and in a child those of older ones count as free.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

namespace facula {

// A fork takes locks in this order. Whoever holds one may take those that come later, never those
// that come earlier: otherwise a fork would wait for it, and it for the fork.
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

// Steps around a fork; any of them may be null. Lives for ever.
class ForkHandler {
 public:
  using Step = void (*)(ForkHandler& self);
  constexpr ForkHandler(ForkOrder order, Step before, Step in_parent, Step in_child)
      : order_(order), before_(before), in_parent_(in_parent), in_child_(in_child) {}
  ForkHandler(const ForkHandler&) = delete;
  // From its first call on, forks run the steps.
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
  bool began_ = false;  // its first step was run for the fork that is under way
  std::atomic<ForkHandler*> next_{nullptr};
};

// A mutex of the whole process, of static storage duration or never destroyed.
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

// 1 in the first process, and one more after each fork in the child.
extern constinit std::atomic<uint32_t> fork_generation_now;
inline uint32_t fork_generation() { return fork_generation_now.load(std::memory_order_relaxed); }

}  // namespace facula
