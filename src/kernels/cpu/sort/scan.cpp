#include "kernels/cpu/sort/scan.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// key_of() without a branch, so that loops vectorise.
template <class T>
[[gnu::always_inline]] inline Key<T> plain_key(T v) {
  using K = Key<T>;
  constexpr K top = static_cast<K>(K(1) << (8 * sizeof(K) - 1));
  const K bits = std::bit_cast<K>(v);
  if constexpr (!has_nan<T>) {
    return std::is_signed_v<T> ? static_cast<K>(bits ^ top) : bits;
  } else {
    constexpr K infinity = std::is_same_v<T, Half>       ? K(0x7c00)
                           : std::is_same_v<T, BFloat16> ? K(0x7f80)
                           : sizeof(T) == 4              ? K(0x7f800000u)
                                                         : static_cast<K>(0x7ff0000000000000ull);
    const K magnitude = static_cast<K>(bits & static_cast<K>(~top));
    K key = static_cast<K>(bits & top ? ~bits : bits | top);
    key = magnitude == 0 ? top : key;
    return magnitude > infinity ? static_cast<K>(~K(0)) : key;
  }
}

}  // namespace

template <class T>
bool keys_below(const T* x, int64_t n, bool flip, Key<T> bound, Key<T>* keys) {
  using K = Key<T>;
  const K mask = flip ? static_cast<K>(~K(0)) : K(0);
  K least = static_cast<K>(~K(0));
  for (int64_t i = 0; i < n; ++i) {
    const K key = static_cast<K>(plain_key(x[i]) ^ mask);
    keys[i] = key;
    least = key < least ? key : least;
  }
  return least < bound;
}

template <class T>
std::pair<T, T> extremes(const T* x, int64_t n) {
  T low = x[0], high = x[0];
  for (int64_t i = 0; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  return {low, high};
}

#define FACULA_KEYS_BELOW(T) template bool keys_below(const T*, int64_t, bool, Key<T>, Key<T>*)
FACULA_KEYS_BELOW(float);
FACULA_KEYS_BELOW(double);
FACULA_KEYS_BELOW(Half);
FACULA_KEYS_BELOW(BFloat16);
FACULA_KEYS_BELOW(uint8_t);
FACULA_KEYS_BELOW(int8_t);
FACULA_KEYS_BELOW(int16_t);
FACULA_KEYS_BELOW(int32_t);
FACULA_KEYS_BELOW(int64_t);
#undef FACULA_KEYS_BELOW

template std::pair<uint8_t, uint8_t> extremes(const uint8_t*, int64_t);
template std::pair<int8_t, int8_t> extremes(const int8_t*, int64_t);
template std::pair<int16_t, int16_t> extremes(const int16_t*, int64_t);
template std::pair<int32_t, int32_t> extremes(const int32_t*, int64_t);
template std::pair<int64_t, int64_t> extremes(const int64_t*, int64_t);
template std::pair<uint16_t, uint16_t> extremes(const uint16_t*, int64_t);
template std::pair<uint32_t, uint32_t> extremes(const uint32_t*, int64_t);
template std::pair<uint64_t, uint64_t> extremes(const uint64_t*, int64_t);

}  // namespace facula::cpu::FACULA_ISA
