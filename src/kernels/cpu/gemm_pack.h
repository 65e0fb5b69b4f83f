// Copies a strided matrix into rows of scratch memory, converting to the type of the sums.
#pragma once
#include "core/half.h"
#include "kernels/cpu/gemm_simd.h"

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

// A square block of 16-byte columns, written as rows: dst[i, j] = src[i + j * src_cs].
template <class T>
[[gnu::always_inline]] inline void transpose_block(T* dst, int64_t dst_rs, const T* src,
                                                   int64_t src_cs) {
  if constexpr (sizeof(T) == 4) {
    typedef T V __attribute__((vector_size(16)));
    typedef T U __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int32_t I __attribute__((vector_size(16)));
    const auto read = [&](int64_t j) -> V { return *reinterpret_cast<const U*>(src + j * src_cs); };
    const auto write = [&](int64_t i, V v) { *reinterpret_cast<U*>(dst + i * dst_rs) = v; };
    const V c0 = read(0), c1 = read(1), c2 = read(2), c3 = read(3);
    const V low01 = __builtin_shuffle(c0, c1, I{0, 4, 1, 5});
    const V low23 = __builtin_shuffle(c2, c3, I{0, 4, 1, 5});
    const V high01 = __builtin_shuffle(c0, c1, I{2, 6, 3, 7});
    const V high23 = __builtin_shuffle(c2, c3, I{2, 6, 3, 7});
    write(0, __builtin_shuffle(low01, low23, I{0, 1, 4, 5}));
    write(1, __builtin_shuffle(low01, low23, I{2, 3, 6, 7}));
    write(2, __builtin_shuffle(high01, high23, I{0, 1, 4, 5}));
    write(3, __builtin_shuffle(high01, high23, I{2, 3, 6, 7}));
  } else {
    typedef T V __attribute__((vector_size(16)));
    typedef T U __attribute__((vector_size(16), aligned(8), may_alias));
    typedef int64_t I __attribute__((vector_size(16)));
    const V c0 = *reinterpret_cast<const U*>(src);
    const V c1 = *reinterpret_cast<const U*>(src + src_cs);
    *reinterpret_cast<U*>(dst) = __builtin_shuffle(c0, c1, I{0, 2});
    *reinterpret_cast<U*>(dst + dst_rs) = __builtin_shuffle(c0, c1, I{1, 3});
  }
}

// Hides where a vector came from: g++ would turn a loop of loads and stores into a call of memmove,
// which costs more than the short rows copied here.
template <class V>
[[gnu::always_inline]] inline V opaque(V v) {
  asm("" : "+x"(v));
  return v;
}

// Copies in whole vectors and then in steps of 16 bytes; returns how many elements were done.
template <class T>
[[gnu::always_inline]] inline int64_t copy_vectors(T* dst, const T* src, int64_t count) {
  using S = Simd<T>;
  constexpr int64_t step = 16 / static_cast<int64_t>(sizeof(T));
  int64_t j = 0;
  for (; j + S::lanes <= count; j += S::lanes) S::store(dst + j, opaque(S::load(src + j)));
  for (; j + step <= count; j += step) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + j));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + j), opaque(v));
  }
  return j;
}

template <class To, class From>
inline void copy_row(To* __restrict dst, const From* __restrict src, int64_t cs, int64_t count) {
  if (cs != 1) {
    for (int64_t j = 0; j < count; ++j) dst[j] = Convert<To, From>::call(src[j * cs]);
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

template <class T>
inline constexpr int64_t kBlockSide = 16 / static_cast<int64_t>(sizeof(T));

// The columns [0, side) of a matrix whose columns are contiguous, converted through a buffer where
// the types differ.
template <class To, class From>
inline void copy_columns(To* dst, int64_t dst_rs, const From* src, int64_t cs, int64_t rows) {
  constexpr int64_t side = kBlockSide<To>, buffered = 64;
  if constexpr (std::is_same_v<To, From>) {
    for (int64_t i = 0; i < rows; i += side) transpose_block(dst + i * dst_rs, dst_rs, src + i, cs);
    return;
  }
  To buffer[side * buffered];
  for (int64_t done = 0; done < rows; done += buffered) {
    const int64_t count = min_of(buffered, rows - done);
    for (int64_t j = 0; j < side; ++j)
      copy_row(buffer + j * buffered, src + done + j * cs, 1, count);
    for (int64_t i = 0; i < count; i += side)
      transpose_block(dst + (done + i) * dst_rs, dst_rs, buffer + i, buffered);
  }
}

// dst[i * dst_rs + j] = src[i * rs + j * cs] for i < rows, j < cols.
template <class To, class From>
inline void copy_matrix(To* dst, int64_t dst_rs, const From* src, int64_t rs, int64_t cs,
                        int64_t rows, int64_t cols) {
  int64_t row = 0;
  if constexpr (sizeof(To) == 4 || sizeof(To) == 8) {
    constexpr int64_t side = kBlockSide<To>;
    if (rs == 1 && cs != 1 && rows >= side) {
      row = rows / side * side;
      int64_t j = 0;
      for (; j + side <= cols; j += side) copy_columns(dst + j, dst_rs, src + j * cs, cs, row);
      for (int64_t i = 0; i < row; ++i)
        copy_row(dst + i * dst_rs + j, src + i + j * cs, cs, cols - j);
    }
  }
  for (; row < rows; ++row) copy_row(dst + row * dst_rs, src + row * rs, cs, cols);
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
