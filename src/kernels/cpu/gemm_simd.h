// Short vectors of the instruction set at hand, on GCC's vector extensions.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/scratch.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64, kMaxRows = 14, kAccumulators = 28;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32, kMaxRows = 6, kAccumulators = 12;
#else
inline constexpr int kVectorBytes = 16, kMaxRows = 6, kAccumulators = 12;
#endif

template <class T>
struct Simd {
  typedef T Vec __attribute__((vector_size(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int lanes = kVectorBytes / static_cast<int>(sizeof(T));

  [[gnu::always_inline]] static Vec load(const T* p) {
    return *reinterpret_cast<const Unaligned*>(p);
  }
  [[gnu::always_inline]] static void store(T* p, Vec v) { *reinterpret_cast<Unaligned*>(p) = v; }
  // x - 0 keeps the sign of a zero, which x + 0 would not.
  [[gnu::always_inline]] static Vec broadcast(T x) { return x - Vec{}; }
};

// a * b + c, fused where the set has it: contraction is off, so it is asked for by name.
template <class V>
[[gnu::always_inline]] inline V multiply_add(V a, V b, V c) {
  return a * b + c;
}
#if defined(__AVX512F__)
template <>
[[gnu::always_inline]] inline __m512 multiply_add(__m512 a, __m512 b, __m512 c) {
  return _mm512_fmadd_ps(a, b, c);
}
template <>
[[gnu::always_inline]] inline __m512d multiply_add(__m512d a, __m512d b, __m512d c) {
  return _mm512_fmadd_pd(a, b, c);
}
#elif defined(__FMA__)
template <>
[[gnu::always_inline]] inline __m256 multiply_add(__m256 a, __m256 b, __m256 c) {
  return _mm256_fmadd_ps(a, b, c);
}
template <>
[[gnu::always_inline]] inline __m256d multiply_add(__m256d a, __m256d b, __m256d c) {
  return _mm256_fmadd_pd(a, b, c);
}
#endif

template <class T>
constexpr T min_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace facula::cpu::FACULA_ISA
