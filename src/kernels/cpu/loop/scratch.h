// Memory for a kernel's own use.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA {

// A block of `count` elements for the life of the object; uninitialised.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : bytes_(byte_size(count)) {
    data_ = static_cast<T*>(cpu_allocate(bytes_));
  }
  ~Scratch() { cpu_free(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  // A count that overflows becomes a request that the allocator refuses.
  static size_t byte_size(int64_t count) {
    size_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(static_cast<size_t>(count), sizeof(T), &bytes);
    return overflow || count < 0 ? ~size_t{0} : bytes;
  }
  size_t bytes_;
  T* data_;
};

}  // namespace facula::cpu::FACULA_ISA
