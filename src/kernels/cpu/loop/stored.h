// Reading memory of dtype bool: any byte but 0 is true, and C++ knows no bools but 0 and 1. Other
// bytes come from views of another dtype, from other libraries and from memory nobody has set.
#pragma once
#include <type_traits>

#include "core/tensor.h"

namespace facula::cpu {

// One element of memory.
template <class T>
inline T read_stored(const T* p) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const uint8_t*>(p) != 0;
  else
    return *p;
}

// What to read elements of type T as: a byte that converts to bool, or T itself.
struct StoredBool {
  uint8_t byte;
  operator bool() const { return byte != 0; }  // implicit: it stands for a bool
};
template <class T>
using stored = std::conditional_t<std::is_same_v<T, bool>, StoredBool, T>;

// As contiguous(), with bools of 0 and 1: for kernels that compare or count elements by value.
Tensor contiguous_values(const Tensor& t);

}  // namespace facula::cpu
