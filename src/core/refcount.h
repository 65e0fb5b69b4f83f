// Intrusive reference counting: RefCounted for objects of C++ alone, ObjectCounted for those that
// may have a Python object.
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
    // With one reference, nobody else can add one, so no locked instruction is needed.
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

class ObjectCounted;

// Functions of the binding that are called when a watched count changes between 1 and 2. Both
// schemes of keeping Python objects alive (python/bindings/tensor/keep_*.h) are built on them.
struct PythonHooks {
  // The count went from 1 to 2.
  void (*shared)(const ObjectCounted&);
  // Releases one of two references, under the GIL; true when the caller must destroy the object.
  bool (*unshare)(const ObjectCounted&);
};
extern std::atomic<const PythonHooks*> python_hooks;

// A reference count with a slot for a Python object, which owns one of the references. While the
// count is *watched*, all other references together own one reference to the Python object, so that
// it lives as long as C++ needs it. "Watched" is a bit of the count, so that both change in one
// atomic step.
class ObjectCounted {
 public:
  ObjectCounted() = default;
  ObjectCounted(const ObjectCounted&) = delete;
  ObjectCounted& operator=(const ObjectCounted&) = delete;

  void retain() const {
    if (count_.fetch_add(1, std::memory_order_relaxed) == (watched | 1)) [[unlikely]]
      tell_shared();
  }
  // True when this was the last reference: the caller destroys the object.
  bool release() const {
    uint32_t n = count_.load(std::memory_order_acquire);
    if (n == 1) {
      count_.store(0, std::memory_order_relaxed);
      return true;
    }
    while (!(n & watched))
      if (count_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
        return n == 1;
    return release_watched();
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire) & ~watched; }

  // --- for the binding, under the GIL

  bool is_watched() const { return count_.load(std::memory_order_acquire) & watched; }
  // Sets the bit; returns the count.
  uint32_t watch() const {
    if (count_.load(std::memory_order_acquire) != 1)
      return count_.fetch_or(watched, std::memory_order_acq_rel) & ~watched;
    count_.store(watched | 1, std::memory_order_relaxed);
    return 1;
  }
  // Sets the bit if there is more than one reference; returns whether there is.
  bool watch_if_shared() const;
  // Clears the bit; returns whether it was set.
  bool unwatch() const { return count_.fetch_and(~watched, std::memory_order_acq_rel) & watched; }
  // Releases a reference of C++. Left::Object says that only the Python object's reference is left:
  // the caller then drops C++'s reference to that object. `watch_on` keeps the bit set.
  enum class Left : uint8_t { Others, Object, Nobody };
  Left release_shared(bool watch_on) const;
  // Releases the Python object's reference and clears the bit; true when it was the last one.
  bool release_object() const {
    if (use_count() == 1) return true;
    unwatch();
    return release();
  }

  std::atomic<void*> python_object{nullptr};  // borrowed

 private:
  static constexpr uint32_t watched = 1u << 31;
  void tell_shared() const;
  bool release_watched() const;

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
