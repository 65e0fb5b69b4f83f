// A vector of trivially copyable elements with room for N inline.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

namespace facula {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() {}  // not `= default`, with which SmallVector() would zero the inline buffer
  explicit SmallVector(size_t n, T value = T{}) { resize(n, value); }
  SmallVector(std::initializer_list<T> v) { assign(v.begin(), v.size()); }
  SmallVector(std::span<const T> v) { assign(v.data(), v.size()); }
  SmallVector(const SmallVector& o) { assign(o.data(), o.size()); }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  ~SmallVector() { drop(); }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) assign(o.data(), o.size());
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      drop();
      take(o);
    }
    return *this;
  }

  void assign(const T* p, size_t n) {
    reserve(n);
    T* to = data();  // a loop, since for such short lists a call of memcpy costs more
    for (size_t i = 0; i < n; ++i) to[i] = p[i];
    size_ = static_cast<uint32_t>(n);
  }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data()[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  void push_back(T v) {
    if (size_ == capacity_) grow(2 * size_t{capacity_});
    data()[size_++] = v;
  }
  void insert(size_t at, T v) {
    push_back(v);
    T* p = data();
    for (size_t i = size_ - 1; i > at; --i) p[i] = p[i - 1];
    p[at] = v;
  }
  void erase(size_t at) {
    T* p = data();
    for (size_t i = at; i + 1 < size_; ++i) p[i] = p[i + 1];
    --size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return heap_ ? heap_ : inline_; }
  const T* data() const { return heap_ ? heap_ : inline_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  operator std::span<const T>() const { return {data(), size_}; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  void grow(size_t n) {
    T* bigger = static_cast<T*>(::operator new(n * sizeof(T)));
    if (size_) std::memcpy(static_cast<void*>(bigger), data(), size_ * sizeof(T));
    drop();
    heap_ = bigger;
    capacity_ = static_cast<uint32_t>(n);
  }
  void drop() {
    if (!heap_) return;
    ::operator delete(heap_);
    heap_ = nullptr;
    capacity_ = N;
  }
  void take(SmallVector& o) {
    size_ = std::exchange(o.size_, 0);
    if (!o.heap_) {
      for (size_t i = 0; i < size_; ++i) inline_[i] = o.inline_[i];
      return;
    }
    heap_ = std::exchange(o.heap_, nullptr);
    capacity_ = std::exchange(o.capacity_, uint32_t{N});
  }

  T inline_[N];
  T* heap_ = nullptr;
  uint32_t size_ = 0, capacity_ = N;
};

// Sizes, strides, dimension lists.
using IntVec = SmallVector<int64_t, 6>;
using IntSpan = std::span<const int64_t>;

}  // namespace facula
