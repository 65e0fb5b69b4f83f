// Numbers as unsigned keys of the same order, with what sorting needs to know beyond them: NaN is
// the greatest value, and the two zeros are equal.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/half.h"

namespace facula::cpu {

template <class T>
using Key =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
inline constexpr bool has_nan = !std::is_integral_v<T>;

template <class T>
inline Key<T> key_of(T v) {
  using K = Key<T>;
  constexpr K top = static_cast<K>(K(1) << (8 * sizeof(K) - 1));
  const K bits = std::bit_cast<K>(v);
  if constexpr (has_nan<T>) {
    if (!(v == v)) return static_cast<K>(~K(0));
    if (static_cast<K>(bits & static_cast<K>(~top)) == 0) return top;
    return bits & top ? static_cast<K>(~bits) : static_cast<K>(bits | top);
  } else if constexpr (std::is_signed_v<T>) {
    return bits ^ top;
  } else {
    return bits;
  }
}

// A key and its index before sorting.
template <class K>
struct Item {
  K key;
  uint32_t index;
  friend bool operator<(const Item& a, const Item& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};
template <>
struct Item<uint64_t> {
  uint64_t key, index;
  friend bool operator<(const Item& a, const Item& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};

}  // namespace facula::cpu
