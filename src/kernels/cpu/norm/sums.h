// Sums of normalisations and their gradients, accumulated in vector registers.
#pragma once
#include <cmath>

#include "core/half.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/vector.h"
#include "kernels/scalar/numeric.h"

namespace facula::cpu::FACULA_ISA {

template <class A>
using Vec = typename Simd<A>::Vec;

// The elements at p as V: as many as a vector holds, or one.
template <class V, class T>
[[gnu::always_inline]] inline V load_as(const T* p) {
  if constexpr (std::is_arithmetic_v<V>) {
    return static_cast<V>(*p);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    constexpr int count = sizeof(V) / sizeof(float);
    using Wide = typename LaneVector<uint32_t, count>::type;
    typename LaneVector<uint16_t, count>::type bits;
    __builtin_memcpy(&bits, p, sizeof bits);
    return std::bit_cast<V>(__builtin_convertvector(bits, Wide) << 16);
  } else if constexpr (std::is_same_v<T, Half>) {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
    float wide[sizeof(V) / sizeof(float)];
    for (float& w : wide) w = static_cast<float>(*p++);
    return std::bit_cast<V>(wide);
#endif
  } else {
    return Simd<T>::load(p);
  }
}

// The sum of a vector's elements, halves onto halves.
template <class A, int count = Simd<A>::lanes>
[[gnu::always_inline]] inline A sum_of(typename LaneVector<A, count>::type v) {
  if constexpr (count == 2) {
    return v[0] + v[1];
  } else {
    typename LaneVector<A, count / 2>::type halves[2];
    __builtin_memcpy(halves, &v, sizeof v);
    return sum_of<A, count / 2>(halves[0] + halves[1]);
  }
}

template <class A>
struct TwoSums {
  A plain = 0, along = 0;  // of some terms, and of the same terms times something
};

inline constexpr int64_t longest_sum = 2048;  // terms that are added up in one go

template <class A, class Step>
[[gnu::always_inline]] inline TwoSums<A> short_two_sums(int64_t begin, int64_t end,
                                                        const Step& step) {
  constexpr int64_t lanes = Simd<A>::lanes, sets = 4;
  Vec<A> plain[sets] = {}, along[sets] = {};
  int64_t i = begin;
  for (; i + sets * lanes <= end; i += sets * lanes)
    for (int64_t s = 0; s < sets; ++s) step(plain[s], along[s], i + s * lanes);
  for (; i + lanes <= end; i += lanes) step(plain[0], along[0], i);
  A plain_rest = 0, along_rest = 0;
  for (; i < end; ++i) step(plain_rest, along_rest, i);
  return {sum_of<A>((plain[0] + plain[1]) + (plain[2] + plain[3])) + plain_rest,
          sum_of<A>((along[0] + along[1]) + (along[2] + along[3])) + along_rest};
}

template <class A, class Step>
[[gnu::noinline]] TwoSums<A> long_two_sums(int64_t begin, int64_t end, const Step& step) {
  if (end - begin <= longest_sum) return short_two_sums<A>(begin, end, step);
  const int64_t middle = begin + round_up((end - begin) / 2, 64);
  const auto first = long_two_sums<A>(begin, middle, step),
             last = long_two_sums<A>(middle, end, step);
  return {first.plain + last.plain, first.along + last.along};
}

// Two sums over [begin, end), long ranges pairwise: step(plain so far, along so far, i) adds to
// both, vectors of neighbours or single numbers.
template <class A, class Step>
[[gnu::always_inline]] inline TwoSums<A> two_sums(int64_t begin, int64_t end, const Step& step) {
  if (end - begin <= longest_sum) return short_two_sums<A>(begin, end, step);
  return long_two_sums<A>(begin, end, step);
}

template <class T, class A>
A sum(const T* x, int64_t n) {
  return two_sums<A>(0, n, [x]<class V>(V& plain, V&, int64_t i) { plain += load_as<V>(x + i); })
      .plain;
}

// The sums of the deviations from a number and of their squares.
template <class T, class A>
TwoSums<A> deviations(const T* x, int64_t n, A mean) {
  return two_sums<A>(0, n, [x, mean]<class V>(V& off, V& squares, int64_t i) {
    const V d = load_as<V>(x + i) - mean;
    off += d;
    squares = multiply_add(d, d, squares);
  });
}

// Mean and variance from a mean that float sums have found, and the sums of the deviations from it
// and of their squares: the first say how far it is off.
struct Moments {
  double mean, variance;
};
template <class A>
Moments corrected(A mean, TwoSums<A> deviations, double count) {
  const double found = static_cast<double>(deviations.plain) / count;
  const double off = std::isfinite(found) ? found : 0;  // an infinite mean has no correction
  const double spread = static_cast<double>(deviations.along) / count - off * off;
  return {static_cast<double>(mean) + off, spread < 0 ? 0 : spread};
}

// 1 / sqrt(variance + eps), rounded once.
template <class A>
A reciprocal_deviation(double variance, double eps) {
  return static_cast<A>(1.0 / std::sqrt(variance + eps));
}

}  // namespace facula::cpu::FACULA_ISA
