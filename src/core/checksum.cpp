// CRC-32 treats the bytes as a polynomial over GF(2) and divides it by a fixed polynomial; the
// remainder is the checksum. Without special instructions, eight tables process eight bytes at a
// time. With PCLMULQDQ, which multiplies such polynomials, 64 bytes at a time are folded into the
// next 64: a part that is n bits ahead is multiplied by the remainder of x^n (Gopal et al., "Fast
// CRC computation for generic polynomials using PCLMULQDQ instruction", Intel, 2009).
#include "core/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace facula {
namespace {

constexpr uint32_t reflected_polynomial = 0xEDB88320;

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest >> 1) ^ ((rest & 1) != 0 ? reflected_polynomial : 0);
    tables[0][byte] = rest;
  }
  for (size_t behind = 1; behind < 8; ++behind)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t rest = tables[behind - 1][byte];
      tables[behind][byte] = (rest >> 8) ^ tables[0][rest & 255];
    }
  return tables;
}

constexpr Tables tables = make_tables();

uint64_t load_8(const uint8_t* p) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | p[i];
  return value;
}

// Here and below `rest` is the checksum with all bits inverted, as CRC-32 defines it.
uint32_t divide_by_table(uint32_t rest, const uint8_t* p, size_t size) {
  for (; size >= 8; p += 8, size -= 8) {
    const uint64_t bits = load_8(p) ^ rest;
    rest = 0;
    for (size_t i = 0; i < 8; ++i) rest ^= tables[7 - i][bits >> (8 * i) & 255];
  }
  for (; size > 0; ++p, --size) rest = (rest >> 8) ^ tables[0][(rest ^ *p) & 255];
  return rest;
}

#if defined(__x86_64__)

constexpr size_t folded_bytes = 64;

#define FACULA_FOLDS __attribute__((target("pclmul,sse4.1")))

FACULA_FOLDS inline __m128i load_16(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// Moves `ahead` by the distance that the two constants encode, and adds it to `there`.
FACULA_FOLDS inline __m128i fold(__m128i ahead, __m128i constants, __m128i there) {
  const __m128i low = _mm_clmulepi64_si128(ahead, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(ahead, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

// Reduces 128 bits to their 32-bit remainder.
FACULA_FOLDS uint32_t reduce(__m128i bits, __m128i by_128) {
  const __m128i words = _mm_setr_epi32(-1, 0, -1, 0);
  // Folds the upper bits into the lower 64 with the remainders of x^96 and x^64.
  __m128i part = _mm_clmulepi64_si128(bits, by_128, 0x10);
  bits = _mm_xor_si128(_mm_srli_si128(bits, 8), part);
  const __m128i by_64 = _mm_cvtsi64_si128(0x163cd6124);
  part = _mm_srli_si128(bits, 4);
  bits = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(bits, words), by_64, 0x00), part);
  // Barrett reduction: computes the quotient by a multiplication, then the remainder.
  const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  part = _mm_clmulepi64_si128(_mm_and_si128(bits, words), polynomial, 0x10);
  part = _mm_clmulepi64_si128(_mm_and_si128(part, words), polynomial, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(bits, part), 1));
}

// `size` is a multiple of 16, and at least 64.
FACULA_FOLDS uint32_t divide_by_folding(uint32_t rest, const uint8_t* p, size_t size) {
  const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = load_16(p + 16 * i);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(rest)));
  p += folded_bytes;
  size -= folded_bytes;
  for (; size >= folded_bytes; p += folded_bytes, size -= folded_bytes)
    for (int i = 0; i < 4; ++i) lanes[i] = fold(lanes[i], by_512, load_16(p + 16 * i));
  __m128i bits = lanes[0];
  for (int i = 1; i < 4; ++i) bits = fold(bits, by_128, lanes[i]);
  for (; size > 0; p += 16, size -= 16) bits = fold(bits, by_128, load_16(p));
  return reduce(bits, by_128);
}

bool can_fold() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}

#endif

}  // namespace

uint32_t crc32_by_table(const void* data, size_t size, uint32_t before) {
  return ~divide_by_table(~before, static_cast<const uint8_t*>(data), size);
}

uint32_t crc32(const void* data, size_t size, uint32_t before) {
#if defined(__x86_64__)
  if (size >= folded_bytes && can_fold()) {
    const auto* p = static_cast<const uint8_t*>(data);
    const size_t whole = size / 16 * 16;
    return ~divide_by_table(divide_by_folding(~before, p, whole), p + whole, size - whole);
  }
#endif
  return crc32_by_table(data, size, before);
}

}  // namespace facula
