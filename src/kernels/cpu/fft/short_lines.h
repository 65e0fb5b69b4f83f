// Transforms of lines of 2, 4, 8 and 16 complex numbers, written out: Cooley and Tukey's, by
// halves ("An algorithm for the machine calculation of complex Fourier series", 1965).
#pragma once
#include "kernels/cpu/fft/pocketfft.h"

namespace facula::cpu::FACULA_ISA {

constexpr int64_t longest_short_line = 16;
constexpr bool is_short_line(int64_t n) {
  return n >= 2 && n <= longest_short_line && (n & (n - 1)) == 0;
}

// cos(k pi / 8) for k from 0 to 4.
inline constexpr double eighths[] = {1.0, 0.92387953251128675613, 0.70710678118654752440,
                                     0.38268343236508977173, 0.0};

// a e^(-2 pi i k / n), or its conjugate where the transform goes backward; 0 < k < n / 2.
template <int n, bool forward, class T, class V>
[[gnu::always_inline]] inline PlanComplex<V> turned(const PlanComplex<V>& a, int k) {
  const int part = k * (16 / n);  // of 16 around the circle
  const V re = a.r, im = forward ? a.i : -a.i;
  V out_re, out_im;
  if (part == 4) {
    out_re = im;
    out_im = -re;
  } else if (part == 2 || part == 6) {
    const T c = static_cast<T>(eighths[2]);
    out_re = part == 2 ? (re + im) * c : (im - re) * c;
    out_im = part == 2 ? (im - re) * c : (re + im) * -c;
  } else {
    const T c = static_cast<T>(part < 4 ? eighths[part] : -eighths[8 - part]);
    const T s = static_cast<T>(part < 4 ? eighths[4 - part] : eighths[part - 4]);
    out_re = re * c + im * s;
    out_im = im * c - re * s;
  }
  return {out_re, forward ? out_im : -out_im};
}

// `to` (n) becomes the transform of every step-th number of `from`.
template <int n, int step, bool forward, class T, class V>
[[gnu::always_inline]] inline void transform_halves(const PlanComplex<V>* from,
                                                    PlanComplex<V>* to) {
  if constexpr (n == 1) {
    to[0] = from[0];
  } else {
    transform_halves<n / 2, 2 * step, forward, T>(from, to);
    transform_halves<n / 2, 2 * step, forward, T>(from + step, to + n / 2);
#pragma GCC unroll 16
    for (int k = 0; k < n / 2; ++k) {
      const PlanComplex<V> even = to[k],
                           odd = k == 0 ? to[n / 2] : turned<n, forward, T>(to[k + n / 2], k);
      to[k] = {even.r + odd.r, even.i + odd.i};
      to[k + n / 2] = {even.r - odd.r, even.i - odd.i};
    }
  }
}

template <int n, bool forward, class T, class V>
[[gnu::noinline]] void transform_short(const PlanComplex<V>* __restrict line,
                                       PlanComplex<V>* __restrict to, T scale) {
  transform_halves<n, 1, forward, T>(line, to);
  if (scale == T(1)) return;
  for (int i = 0; i < n; ++i) to[i] = {to[i].r * scale, to[i].i * scale};
}

// `to` becomes the transform of `line`; n is a short line's.
template <class T, class V>
void transform_short_line(const PlanComplex<V>* line, PlanComplex<V>* to, int64_t n, T scale,
                          bool forward) {
  const auto run = [&]<int length>(std::integral_constant<int, length>) {
    forward ? transform_short<length, true>(line, to, scale)
            : transform_short<length, false>(line, to, scale);
  };
  switch (n) {
    case 2:
      return run(std::integral_constant<int, 2>());
    case 4:
      return run(std::integral_constant<int, 4>());
    case 8:
      return run(std::integral_constant<int, 8>());
    default:
      return run(std::integral_constant<int, 16>());
  }
}

}  // namespace facula::cpu::FACULA_ISA
