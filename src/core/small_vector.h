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
  SmallVector() = default;
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
    if (n) std::memmove(data_, p, n * sizeof(T));
    size_ = n;
  }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  void push_back(T v) {
    if (size_ == capacity_) grow(2 * capacity_);
    data_[size_++] = v;
  }
  void insert(size_t at, T v) {
    push_back(v);
    for (size_t i = size_ - 1; i > at; --i) data_[i] = data_[i - 1];
    data_[at] = v;
  }
  void erase(size_t at) {
    for (size_t i = at; i + 1 < size_; ++i) data_[i] = data_[i + 1];
    --size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  operator std::span<const T>() const { return {data_, size_}; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  void grow(size_t n) {
    T* bigger = static_cast<T*>(::operator new(n * sizeof(T)));
    if (size_) std::memcpy(static_cast<void*>(bigger), data_, size_ * sizeof(T));
    drop();
    data_ = bigger;
    capacity_ = n;
  }
  void drop() {
    if (data_ != inline_) ::operator delete(data_);
    data_ = inline_;
    capacity_ = N;
  }
  void take(SmallVector& o) {
    size_ = o.size_;
    if (o.data_ == o.inline_) {
      std::memcpy(static_cast<void*>(inline_), o.inline_, size_ * sizeof(T));
    } else {
      data_ = std::exchange(o.data_, o.inline_);
      capacity_ = std::exchange(o.capacity_, N);
    }
    o.size_ = 0;
  }

  T inline_[N];
  T* data_ = inline_;
  size_t size_ = 0, capacity_ = N;
};

// Sizes, strides, dimension lists.
using IntVec = SmallVector<int64_t, 6>;
using IntSpan = std::span<const int64_t>;

}  // namespace facula
