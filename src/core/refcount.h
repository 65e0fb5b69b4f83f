// Intrusive reference counting. All counting goes through RefCounted::retain and release, so that
// the Python binding can later be told of a count passing between 1 and 2 (design, section 8).
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace facula {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when this was the last reference: the caller destroys the object.
  bool release() const {
    // A sole owner needs no locked instruction: nobody else can add a reference meanwhile.
    if (count_.load(std::memory_order_acquire) == 1) {
      count_.store(0, std::memory_order_relaxed);
      return true;
    }
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  // Adds a reference unless the object is being destroyed.
  bool try_retain() const {
    uint32_t n = count_.load(std::memory_order_relaxed);
    while (n != 0)
      if (count_.compare_exchange_weak(n, n + 1, std::memory_order_acquire)) return true;
    return false;
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<uint32_t> count_{1};
};

// Owns one reference to T; `destroy(T*)`, found by argument-dependent lookup, ends its life.
template <class T>
class Ref {
 public:
  constexpr Ref() = default;
  constexpr Ref(std::nullptr_t) {}
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ~Ref() { reset(); }
  Ref& operator=(const Ref& o) {
    Ref(o).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    Ref(std::move(o)).swap(*this);
    return *this;
  }
  static Ref take(T* p) {  // adopts a reference that the caller owned
    Ref r;
    r.p_ = p;
    return r;
  }
  static Ref share(T* p) {  // adds a reference
    if (p) p->retain();
    return take(p);
  }
  void reset() {
    if (T* p = std::exchange(p_, nullptr); p && p->release()) destroy(p);
  }
  T* leak() { return std::exchange(p_, nullptr); }  // hands the reference to the caller
  void swap(Ref& o) noexcept { std::swap(p_, o.p_); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace facula
