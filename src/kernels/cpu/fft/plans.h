// Plans (factors and roots of unity of a length), kept for the next call.
#pragma once
#include <array>
#include <memory>
#include <mutex>

#include "core/fork.h"
#include "kernels/cpu/fft/pocketfft.h"

namespace facula::cpu::FACULA_ISA {

// The plans that were used last. A plan does not change once it is made, so threads share it.
template <class Plan>
class PlanCache {
 public:
  using Ptr = std::shared_ptr<const Plan>;

  Ptr get(int64_t length) {
    if (Ptr found = find(length)) return found;
    Ptr made = std::make_shared<const Plan>(static_cast<size_t>(length));
    if (length <= longest_kept) keep(made);
    return made;
  }

 private:
  static constexpr int64_t longest_kept = int64_t{1} << 22;

  Ptr find(int64_t length) {
    const std::lock_guard hold(lock_);
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (!plans_[i] || static_cast<int64_t>(plans_[i]->length()) != length) continue;
      Ptr found = std::move(plans_[i]);
      for (size_t k = i; k > 0; --k) plans_[k] = std::move(plans_[k - 1]);
      return plans_[0] = found;
    }
    return nullptr;
  }
  // In place of the one that was not used for longest, which dies after the lock is let go.
  void keep(Ptr plan) {
    const std::lock_guard hold(lock_);
    for (Ptr& p : plans_) std::swap(p, plan);
  }

  // Held for a few moves of pointers: while it is held, nothing is allocated.
  ForkSafeMutex lock_{ForkOrder::Memory};
  std::array<Ptr, 16> plans_;
};

template <class Plan>
std::shared_ptr<const Plan> plan_of(int64_t length) {
  // Never destroyed: threads may outlive main.
  union Immortal {
    PlanCache<Plan> cache;
    constexpr Immortal() : cache() {}
    ~Immortal() {}
  };
  static constinit Immortal plans;
  return plans.cache.get(length);
}

}  // namespace facula::cpu::FACULA_ISA
