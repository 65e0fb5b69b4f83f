// Numbers with a fraction to integers, as PyTorch converts on x86.
#pragma once
#include <cstdint>
#include <type_traits>

namespace facula::cpu {

// The processor truncates to signed integers of 32 or 64 bits, and gives the lowest one for what
// does not fit, infinities and nan; narrower integers keep the low bits of that.
template <class T>
inline T float_to_int(double v) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (v >= 0x1p63) return v < 0x1p64 ? static_cast<uint64_t>(v) : 0;
  }
  if constexpr (sizeof(T) < 4 ? !std::is_same_v<T, uint8_t> : std::is_same_v<T, int32_t>) {
    const bool fits = v > -0x1p31 - 1 && v < 0x1p31;
    return static_cast<T>(fits ? static_cast<int32_t>(v) : INT32_MIN);
  } else {
    const bool fits = v >= -0x1p63 && v < 0x1p63;
    return static_cast<T>(fits ? static_cast<int64_t>(v) : INT64_MIN);
  }
}

}  // namespace facula::cpu
