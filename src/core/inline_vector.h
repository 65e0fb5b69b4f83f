// A vector of movable elements with room for N inline, for lists that are nearly always short.
#pragma once
#include <cstddef>
#include <new>
#include <utility>

namespace facula {

template <class T, size_t N>
class InlineVector {
 public:
  InlineVector() {}  // not `= default`, with which InlineVector() would zero the inline buffer
  InlineVector(const InlineVector& o) {
    reserve(o.size_);
    for (const T& v : o) push_back(v);
  }
  InlineVector& operator=(const InlineVector& o) {
    if (this == &o) return *this;
    clear();
    reserve(o.size_);
    for (const T& v : o) push_back(v);
    return *this;
  }
  ~InlineVector() {
    clear();
    if (data_ != room()) ::operator delete(data_);
  }
  void push_back(T v) { emplace_back(std::move(v)); }
  // The arguments must not refer into this vector.
  template <class... A>
  T& emplace_back(A&&... a) {
    if (size_ == capacity_) grow(2 * capacity_);
    return *new (data_ + size_++) T{std::forward<A>(a)...};
  }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void clear() {
    for (T& v : *this) v.~T();
    size_ = 0;
  }
  template <class Test>
  void erase_if(Test&& test) {
    size_t kept = 0;
    for (size_t i = 0; i < size_; ++i) {
      if (test(data_[i])) continue;
      if (kept != i) data_[kept] = std::move(data_[i]);
      ++kept;
    }
    while (size_ > kept) data_[--size_].~T();
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* room() { return reinterpret_cast<T*>(inline_); }
  void grow(size_t n) {
    T* bigger = static_cast<T*>(::operator new(n * sizeof(T)));
    for (size_t i = 0; i < size_; ++i) {
      new (bigger + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (data_ != room()) ::operator delete(data_);
    data_ = bigger;
    capacity_ = n;
  }
  alignas(T) unsigned char inline_[N * sizeof(T)];
  T* data_ = reinterpret_cast<T*>(inline_);
  size_t size_ = 0, capacity_ = N;
};

}  // namespace facula
