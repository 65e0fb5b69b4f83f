// 16-bit floating point types and the 8-bit storage types: bit patterns with conversions to float.
#pragma once
#include <bit>
#include <cstdint>

namespace facula {

namespace detail {

// Branch-light IEEE half <-> float conversions, written so that loops over them vectorise.
constexpr float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t body = static_cast<uint32_t>(h & 0x7fffu) << 13;
  const uint32_t exponent = body & 0x0f800000u;
  // A subnormal half is a small integer times 2^-24: let float arithmetic normalise it.
  const float subnormal =
      std::bit_cast<float>(body + 0x38800000u) - std::bit_cast<float>(0x38800000u);
  const uint32_t normal = body + (exponent == 0x0f800000u ? 0x70000000u : 0x38000000u);
  return std::bit_cast<float>(sign | (exponent == 0 ? std::bit_cast<uint32_t>(subnormal) : normal));
}

constexpr uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (a < 0x38800000u) {  // subnormal: adding 0.5 leaves the rounded integer in the low bits
    const float shifted = std::bit_cast<float>(a) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = a + 0xfffu + ((a >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr uint16_t float_to_bfloat(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

}  // namespace detail

// IEEE binary16. Arithmetic happens in float, each operation rounding back.
struct Half {
  uint16_t bits;
  Half() = default;
  constexpr Half(float f) : bits(detail::float_to_half(f)) {}
  constexpr operator float() const { return detail::half_to_float(bits); }
  static constexpr Half from_bits(uint16_t b) {
    Half h{};
    h.bits = b;
    return h;
  }
};

// The upper half of a float.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  constexpr BFloat16(float f) : bits(detail::float_to_bfloat(f)) {}
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  static constexpr BFloat16 from_bits(uint16_t b) {
    BFloat16 h{};
    h.bits = b;
    return h;
  }
};

// Storage-only 8-bit formats (OCP FP8): converted to and from float, never computed in.
struct Float8E4M3 {
  uint8_t bits;
  Float8E4M3() = default;
  Float8E4M3(float f);
  operator float() const;
};

struct Float8E5M2 {
  uint8_t bits;
  Float8E5M2() = default;
  constexpr Float8E5M2(float f) : bits(encode(f)) {}
  constexpr operator float() const {
    return detail::half_to_float(static_cast<uint16_t>(bits << 8));
  }

 private:
  // Rounds once, straight from float: going through half would round twice.
  static constexpr uint8_t encode(float f) {
    const uint32_t b = std::bit_cast<uint32_t>(f);
    const uint32_t sign = (b >> 24) & 0x80u, a = b & 0x7fffffffu;
    if (a > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
    if (a >= 0x47700000u) return static_cast<uint8_t>(sign | 0x7cu);
    if (a < 0x38800000u) {  // subnormal: steps of 2^-16
      const float shifted = std::bit_cast<float>(a) + 128.0f;
      return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x43000000u));
    }
    const uint32_t rounded = a + 0xfffffu + ((a >> 21) & 1u);
    return static_cast<uint8_t>(sign | ((rounded - 0x38000000u) >> 21));
  }
};

// The formats "fnuz" have no infinity and no negative zero; the code of that is their only NaN, and
// stands for all values beyond the largest. The bias is one more than that of the OCP formats.
template <int Exponent, int Mantissa>
struct Float8Fnuz {
  uint8_t bits;
  Float8Fnuz() = default;
  constexpr Float8Fnuz(float f) : bits(encode(f)) {}
  constexpr operator float() const {
    if (bits == nan_code) return std::bit_cast<float>(0x7fc00000u);
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, a = bits & 0x7fu;
    if (a < 1u << Mantissa) {  // subnormal: an integer times the least step, itself a power of two
      const float small = static_cast<float>(a) * std::bit_cast<float>(least_step);
      return sign ? -small : small;
    }
    return std::bit_cast<float>(sign | ((a << shift) + rebias));
  }

 private:
  static constexpr int shift = 23 - Mantissa, bias = 1 << (Exponent - 1);
  static constexpr uint8_t nan_code = 0x80;
  // Exponents of floats, in their place among a float's bits.
  static constexpr uint32_t exponent_bits(int e) { return static_cast<uint32_t>(127 + e) << 23; }
  static constexpr uint32_t rebias = exponent_bits(-bias);
  static constexpr uint32_t least_normal = exponent_bits(1 - bias);
  static constexpr uint32_t least_step = exponent_bits(1 - bias - Mantissa);
  static constexpr uint32_t too_large = exponent_bits((1 << Exponent) - bias);

  static constexpr uint8_t encode(float f) {
    const uint32_t b = std::bit_cast<uint32_t>(f);
    const uint32_t sign = (b >> 24) & 0x80u, a = b & 0x7fffffffu;
    if (a >= too_large) return nan_code;
    if (a < least_normal) {  // adding this much leaves the rounded integer in the low bits
      constexpr uint32_t adds = least_step + (23u << 23);
      const float shifted = std::bit_cast<float>(a) + std::bit_cast<float>(adds);
      const uint32_t steps = std::bit_cast<uint32_t>(shifted) - adds;
      return static_cast<uint8_t>(steps == 0 ? 0 : sign | steps);
    }
    const uint32_t half_less = (1u << (shift - 1)) - 1;
    const uint32_t rounded = a + half_less + ((a >> shift) & 1u);
    return static_cast<uint8_t>(sign | ((rounded - rebias) >> shift));
  }
};
using Float8E4M3FNUZ = Float8Fnuz<4, 3>;
using Float8E5M2FNUZ = Float8Fnuz<5, 2>;

// A power of two from 2^-127 to 2^127, or NaN: a float's exponent alone, without a sign or zero.
struct Float8E8M0 {
  uint8_t bits;
  Float8E8M0() = default;
  constexpr Float8E8M0(float f) : bits(encode(f)) {}
  constexpr operator float() const {
    if (bits == 0xff) return std::bit_cast<float>(0x7fc00000u);
    return std::bit_cast<float>(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
  }

 private:
  // Rounds in steps of the mantissa, halves up; those between zero and 2^-127 down.
  static constexpr uint8_t encode(float f) {
    const uint32_t a = std::bit_cast<uint32_t>(f) & 0x7fffffffu;
    if (a >= 0x7f800000u) return 0xff;
    return static_cast<uint8_t>((a + (a < 0x00800000u ? 0x3fffffu : 0x400000u)) >> 23);
  }
};

}  // namespace facula
