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

// x[i] = e^(x[i] - most), zeros from n to `padded`; the sum.
template <class A>
A exp_row(A* __restrict x, A most, int64_t n, int64_t padded) {
  for (int64_t i = n; i < padded; ++i) x[i] = 0;
  A sum[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= n; i += sum_lanes) {
    for (int64_t l = 0; l < sum_lanes; ++l) {
      x[i + l] = math::exp_coarse(x[i + l] - most);
      sum[l] += x[i + l];
    }
  }
  for (int64_t l = 0; i + l < n; ++l) {
    x[i + l] = math::exp_coarse(x[i + l] - most);
    sum[l] += x[i + l];
  }
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
