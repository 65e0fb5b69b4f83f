// Copies a strided matrix into rows of scratch memory, converting to the type of the sums.
#pragma once
#include "core/half.h"
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

// Element conversions, forced inline: a copy of core's made here would have this set's instructions
// and the baseline's name.
template <class To, class From>
struct Convert {
  [[gnu::always_inline]] static To call(From x) { return static_cast<To>(x); }
};
template <>
struct Convert<float, BFloat16> {
  [[gnu::always_inline]] static float call(BFloat16 x) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
  }
};
template <>
struct Convert<BFloat16, float> {
  [[gnu::always_inline]] static BFloat16 call(float x) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return __builtin_bit_cast(BFloat16, static_cast<uint16_t>(nan ? 0x7fc0u : rounded));
  }
};
#if defined(__F16C__)
template <>
struct Convert<float, Half> {
  [[gnu::always_inline]] static float call(Half x) { return _cvtsh_ss(x.bits); }
};
template <>
struct Convert<Half, float> {
  [[gnu::always_inline]] static Half call(float x) {
    return __builtin_bit_cast(Half, static_cast<uint16_t>(_cvtss_sh(x, 0)));
  }
};
#endif

#if defined(__F16C__)
// Converts in steps of eight and returns how many were done.
inline int64_t widen_half(float* dst, const Half* src, int64_t count) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + j));
    _mm256_storeu_ps(dst + j, _mm256_cvtph_ps(bits));
  }
  return j;
}
#endif

// Hides where a vector came from: g++ would turn a loop of loads and stores into a call of memmove,
// which costs more than the short rows copied here.
template <class V>
[[gnu::always_inline]] inline V opaque(V v) {
#if defined(__aarch64__)
  asm("" : "+w"(v));
#else
  asm("" : "+x"(v));
#endif
  return v;
}

// Copies in whole vectors and then in steps of 16 bytes; returns how many elements were done.
template <class T>
[[gnu::always_inline]] inline int64_t copy_vectors(T* dst, const T* src, int64_t count) {
  using S = Simd<T>;
  typedef int64_t Sixteen __attribute__((vector_size(16), aligned(1), may_alias));
  constexpr int64_t step = 16 / static_cast<int64_t>(sizeof(T));
  int64_t j = 0;
  for (; j + S::lanes <= count; j += S::lanes) S::store(dst + j, opaque(S::load(src + j)));
  for (; j + step <= count; j += step)
    *reinterpret_cast<Sixteen*>(dst + j) = opaque(*reinterpret_cast<const Sixteen*>(src + j));
  return j;
}

// Copies every other element, `count` of them, and reads none behind the last; returns how many
// were done.
template <class T>
[[gnu::always_inline]] inline int64_t copy_alternate(T* dst, const T* src, int64_t count) {
  using S = Simd<T>;
  using Q = Square<T, S::lanes>;
  constexpr auto lanes = std::make_index_sequence<S::lanes>{};
  int64_t j = 0;
  for (; j + S::lanes < count; j += S::lanes)
    S::store(dst + j, Q::even(S::load(src + 2 * j), S::load(src + 2 * j + S::lanes), lanes));
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const uint64_t left = static_cast<uint64_t>(count - j);
    const uint64_t wanted = (uint64_t{1} << (2 * left)) - 1, kept = (uint64_t{1} << left) - 1;
    const auto low = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(wanted >> 1), src + 2 * j);
    const auto high =
        _mm512_maskz_loadu_epi32(static_cast<__mmask16>(wanted >> 17), src + 2 * j + S::lanes);
    _mm512_mask_storeu_epi32(dst + j, static_cast<__mmask16>(kept),
                             (__m512i)Q::even((typename S::Vec)low, (typename S::Vec)high, lanes));
    j = count;
  }
#endif
  return j;
}

template <class To, class From>
inline void copy_row(To* __restrict dst, const From* __restrict src, int64_t cs, int64_t count) {
  if (cs != 1) {
    int64_t j = 0;
    if constexpr (std::is_same_v<To, From> && sizeof(To) >= 4)
      if (cs == 2) j = copy_alternate(dst, src, count);
    for (; j < count; ++j) dst[j] = Convert<To, From>::call(src[j * cs]);
    return;
  }
  int64_t j = 0;
  if constexpr (std::is_same_v<To, From>) j = copy_vectors(dst, src, count);
#if defined(__F16C__)
  if constexpr (std::is_same_v<To, float> && std::is_same_v<From, Half>)
    j = widen_half(dst, src, count);
#endif
  for (; j < count; ++j) dst[j] = Convert<To, From>::call(src[j]);
}

// The same as copy_transposed, with the elements of a column `rs` apart and perhaps of another
// type: a strip at a time goes through a buffer.
template <class To, class From>
inline void convert_transposed(To* dst, int64_t dst_rs, const From* src, int64_t rs, int64_t cs,
                               int64_t rows, int64_t cols) {
  constexpr int64_t side = Simd<To>::lanes, buffered = 64;
  To buffer[side * buffered];
  for (int64_t i = 0; i < rows; i += buffered) {
    const int64_t high = min_of(buffered, rows - i);
    for (int64_t j = 0; j < cols; j += side) {
      const int64_t wide = min_of(side, cols - j);
      for (int64_t c = 0; c < wide; ++c)
        copy_row(buffer + c * buffered, src + i * rs + (j + c) * cs, rs, high);
      copy_transposed(dst + i * dst_rs + j, dst_rs, buffer, buffered, high, wide);
    }
  }
}

// dst[i * dst_rs + j] = src[i * rs + j * cs] for i < rows, j < cols.
template <class To, class From>
inline void copy_matrix(To* dst, int64_t dst_rs, const From* src, int64_t rs, int64_t cs,
                        int64_t rows, int64_t cols) {
  if constexpr (sizeof(To) == 4 || sizeof(To) == 8) {
    const bool transposed = (rs == 1 || rs == 2) && cs != 1 && rows >= 4;
    if constexpr (std::is_same_v<To, From>)
      if (transposed && rs == 1) return copy_transposed(dst, dst_rs, src, cs, rows, cols);
    if (transposed) return convert_transposed(dst, dst_rs, src, rs, cs, rows, cols);
  }
  for (int64_t row = 0; row < rows; ++row) copy_row(dst + row * dst_rs, src + row * rs, cs, cols);
}

// The same, with zeros from column `cols` to `width`.
template <class To, class From>
inline void copy_padded(To* dst, int64_t dst_rs, const From* src, int64_t rs, int64_t cs,
                        int64_t rows, int64_t cols, int64_t width) {
  copy_matrix(dst, dst_rs, src, rs, cs, rows, cols);
  for (int64_t i = 0; cols < width && i < rows; ++i) {
    for (int64_t j = cols; j < width; ++j) dst[i * dst_rs + j] = To(0);
  }
}

}  // namespace facula::cpu::FACULA_ISA
