// Short vectors of the instruction set at hand, on GCC's vector extensions.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/loop/scratch.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64, max_tile_rows = 14, max_accumulators = 28;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32, max_tile_rows = 6, max_accumulators = 12;
#elif defined(__aarch64__)  // 32 registers, as AVX-512 has
inline constexpr int vector_bytes = 16, max_tile_rows = 14, max_accumulators = 28;
#else
inline constexpr int vector_bytes = 16, max_tile_rows = 6, max_accumulators = 12;
#endif

template <class T>
struct Simd {
  typedef T Vec __attribute__((vector_size(vector_bytes)));
  typedef T Unaligned __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));
  static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

  [[gnu::always_inline]] static Vec load(const T* p) {
    return *reinterpret_cast<const Unaligned*>(p);
  }
  [[gnu::always_inline]] static void store(T* p, Vec v) { *reinterpret_cast<Unaligned*>(p) = v; }
  // x - 0 keeps the sign of a zero, which x + 0 would not.
  [[gnu::always_inline]] static Vec broadcast(T x) { return x - Vec{}; }
};

// a * b + c of vectors or numbers, in one rounding where the instruction set has fma. The compiler
// may not fuse by itself (-ffp-contract=off), so that only sums written so differ between sets.
template <class V>
[[gnu::always_inline]] inline V multiply_add(V a, V b, V c) {
  return a * b + c;
}
#if defined(__FMA__)
template <>
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
template <>
[[gnu::always_inline]] inline double multiply_add(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
#endif
#if defined(__AVX512F__)
template <>
[[gnu::always_inline]] inline __m512 multiply_add(__m512 a, __m512 b, __m512 c) {
  return _mm512_fmadd_ps(a, b, c);
}
template <>
[[gnu::always_inline]] inline __m512d multiply_add(__m512d a, __m512d b, __m512d c) {
  return _mm512_fmadd_pd(a, b, c);
}
#elif defined(__AVX2__)
template <>
[[gnu::always_inline]] inline __m256 multiply_add(__m256 a, __m256 b, __m256 c) {
  return _mm256_fmadd_ps(a, b, c);
}
template <>
[[gnu::always_inline]] inline __m256d multiply_add(__m256d a, __m256d b, __m256d c) {
  return _mm256_fmadd_pd(a, b, c);
}
#elif defined(__aarch64__)
template <>
[[gnu::always_inline]] inline Simd<float>::Vec multiply_add(Simd<float>::Vec a, Simd<float>::Vec b,
                                                            Simd<float>::Vec c) {
  return (Simd<float>::Vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
template <>
[[gnu::always_inline]] inline Simd<double>::Vec multiply_add(Simd<double>::Vec a,
                                                             Simd<double>::Vec b,
                                                             Simd<double>::Vec c) {
  return (Simd<double>::Vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
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
