#include "core/half.h"

namespace facula {

// e4m3fn: 4 exponent bits of bias 7, no infinity, NaN is all ones, largest finite 448.
Float8E4M3::Float8E4M3(float f) {
  const uint32_t b = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (b >> 24) & 0x80u, a = b & 0x7fffffffu;
  if (a > 0x7f800000u) {
    bits = static_cast<uint8_t>(sign | 0x7fu);
    return;
  }
  if (a >= 0x43e00000u) {  // 448 and more saturate, infinities too, as in PyTorch
    bits = static_cast<uint8_t>(sign | 0x7eu);
    return;
  }
  if (a < 0x3c800000u) {  // below 2^-6: steps of 2^-9
    const float shifted = std::bit_cast<float>(a) + 16384.0f;
    bits = static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x46800000u));
    return;
  }
  const uint32_t rounded = a + 0x7ffffu + ((a >> 20) & 1u);
  bits = static_cast<uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}

Float8E4M3::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t a = bits & 0x7fu;
  if (a == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (a < 8) {
    const float small = static_cast<float>(a) * 0x1p-9f;
    return sign ? -small : small;
  }
  return std::bit_cast<float>(sign | ((a << 20) + 0x3c000000u));
}

}  // namespace facula
