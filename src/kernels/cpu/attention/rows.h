// Rows of scores on the way to weights.
#pragma once
#include "kernels/cpu/matmul/gemm_pack.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {

namespace math = scalar::math;

constexpr int64_t sum_lanes = 16;

// The columns [first, n) of a row in the backward pass; those before `hidden` become zeros.
struct RowSpan {
  int64_t first, n, hidden;
};

// The sum of `sum_lanes` partial sums: halves are added until one is left.
template <class A>
[[gnu::always_inline]] inline A sum_of_lanes(A* sum) {
#pragma GCC unroll 4
  for (int64_t half = sum_lanes / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int64_t l = 0; l < half; ++l) sum[l] += sum[l + half];
  return sum[0];
}

// x[i] = scale * x[i] (+ mask[i]); the largest.
template <class A>
A scale_row(A* __restrict x, const A* __restrict mask, A scale, int64_t n) {
  using S = Simd<A>;
  const auto factor = S::broadcast(scale);
  A most = -static_cast<A>(__builtin_inf());
  auto top = S::broadcast(most);
  int64_t i = 0;
  for (; i + S::lanes <= n; i += S::lanes) {
    auto scaled = S::load(x + i) * factor;
    if (mask != nullptr) scaled += S::load(mask + i);
    S::store(x + i, scaled);
    top = scaled > top ? scaled : top;
  }
#pragma GCC unroll 4
  for (int64_t half = S::lanes / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int64_t l = 0; l < half; ++l) top[l] = top[l + half] > top[l] ? top[l + half] : top[l];
  most = top[0];
  for (; i < n; ++i) {
    x[i] = mask != nullptr ? x[i] * scale + mask[i] : x[i] * scale;
    most = x[i] > most ? x[i] : most;
  }
  return most;
}

#if defined(__AVX512F__)
// e^x with the bits of math::exp_coarse. Half as many instructions as the compiler makes of the
// same: bounds without comparisons into masks, and a power of two that may give a subnormal number
// in one step.
[[gnu::always_inline]] inline __m512 exp_vector(__m512 x) {
  constexpr float magic = 0x1.8p23f, ln2 = 0x1.62e43p-1f, ln2_rest = -0x1.05c610ca86c39p-29f;
  const auto all = [](float v) { return _mm512_set1_ps(v); };
  // The second operand is kept if one is nan.
  const __m512 bounded =
      _mm512_maskz_min_ps(0xffff, all(89.0f), _mm512_maskz_max_ps(0xffff, all(-104.0f), x));
  const __m512 shifted = _mm512_fmadd_ps(bounded, all(1.4426950408889634f), all(magic));
  const __m512 k = shifted - all(magic);
  const __m512 wide = _mm512_fnmadd_ps(k, all(ln2), bounded);
  const __m512 r = _mm512_fnmadd_ps(k, all(ln2_rest), wide);
  const __m512 lost = _mm512_fnmadd_ps(k, all(ln2_rest), wide - r);
  __m512 tail = all(0.00019920654f);
  for (const float c : {0.0013946054f, 0.008333261f, 0.041666273f, 0.16666667f, 0.5f})
    tail = _mm512_fmadd_ps(r, tail, all(c));
  const __m512 y = all(1.0f) + (r + _mm512_fmadd_ps(r * r, tail, lost));
  return _mm512_maskz_scalef_ps(0xffff, y, k);
}
#endif

// x[i] = e^exponent for i in [begin, end). It is made of columns: exponent(at) has at(p) for p[i],
// a number or a vector of them.
template <class A, class F>
[[gnu::always_inline]] inline void exp_columns(A* x, int64_t begin, int64_t end, F&& exponent) {
  int64_t i = begin;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<A, float>) {
    using S = Simd<float>;
    for (; i + S::lanes <= end; i += S::lanes)
      S::store(x + i, exp_vector(exponent([i](const A* p) { return S::load(p + i); })));
  }
#endif
  for (; i < end; ++i) x[i] = math::exp_coarse(exponent([i](const A* p) { return p[i]; }));
}

// x[i] = e^(x[i] - most), zeros from n to `padded`; the sum.
template <class A>
A exp_row(A* __restrict x, A most, int64_t n, int64_t padded) {
  for (int64_t i = n; i < padded; ++i) x[i] = 0;
  exp_columns(x, 0, n, [&](auto at) { return at(x) - most; });
  A sum[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= n; i += sum_lanes)
    for (int64_t l = 0; l < sum_lanes; ++l) sum[l] += x[i + l];
  for (int64_t l = 0; i + l < n; ++l) sum[l] += x[i + l];
  return sum_of_lanes(sum);
}

template <class A, class Left, class Right>
[[gnu::always_inline]] inline A dot_of(const Left* left, const Right* right, int64_t n) {
  A sum[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= n; i += sum_lanes)
    for (int64_t l = 0; l < sum_lanes; ++l)
      sum[l] += Convert<A, Left>::call(left[i + l]) * Convert<A, Right>::call(right[i + l]);
  for (int64_t l = 0; i + l < n; ++l)
    sum[l] += Convert<A, Left>::call(left[i + l]) * Convert<A, Right>::call(right[i + l]);
  return sum_of_lanes(sum);
}

}  // namespace facula::cpu::FACULA_ISA
