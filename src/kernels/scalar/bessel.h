// Bessel functions (J, Y, I, K of order 0 and 1), the spherical j0 and Airy's Ai, computed in
// double: float results are rounded nearly right. Bounds for double, away from zeros: i0, i0e,
// i1, i1e and K 5 units in the last place; J and Y 2^-50 of their amplitude.
#pragma once
#include <math.h>

#include <iterator>
#include <type_traits>

#include "kernels/scalar/chebyshev.h"
#include "kernels/scalar/math.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

constexpr double root_of_pi = 1.772453850905516, root_of_half = 0.7071067811865476;

// The sum at x of a series over [low, high], or of its first terms, for series that fall fast.
template <int terms, const auto& series>
FACULA_SCALAR double series_sum(double x, double low, double high) {
  constexpr int count = terms ? terms : static_cast<int>(std::size(series));
  return chebyshev_by_powers<series, count>(x, low, high);
}
// e^-a I_v(a) for a >= 0 by series up to 8, times a factor, and beyond. Both are computed and one
// is taken: loops become vectors.
template <const auto& near_series, const auto& far_series>
FACULA_SCALAR double scaled_i(double a, double factor) {
  const double near = factor * chebyshev(near_series, a, 0.0, 8.0);
  const double far = series_sum<0, far_series>(8.0 / a, 0.0, 1.0) / sqrt(a);
  return a <= 8.0 ? near : far;
}
// The same from 1 / a; a float needs the first terms only.
template <const auto& near_series, const auto& far_series>
FACULA_SCALAR double scaled_i_short(double a, double factor, double inverse) {
  const double near = factor * chebyshev_by_powers<near_series, 20>(a, 0.0, 8.0);
  const double far = chebyshev_by_powers<far_series, 11>(8.0 * inverse, 0.0, 1.0) * sqrt(inverse);
  return a <= 8.0 ? near : far;
}
template <class T>
FACULA_SCALAR double scaled_i0(double x) {
  const double a = abs(x);
  if constexpr (std::is_same_v<T, float>)
    return scaled_i_short<series::i0_near, series::i0_far>(a, 1.0, 1.0 / a);
  return scaled_i<series::i0_near, series::i0_far>(a, 1.0);
}
// e^-a I_1(a) of a float, with one division for 1 / a and a / (1 + a).
FACULA_SCALAR double scaled_i1_short(double a) {
  const double bounded = a > 1e300 ? 1e300 : a;  // infinity
  const double shared = 1.0 / ((bounded + 1e-300) * (1.0 + bounded));
  return scaled_i_short<series::i1_near, series::i1_far>(a, bounded * (bounded * shared),
                                                         shared * (1.0 + bounded));
}
template <class T>
FACULA_SCALAR double scaled_i1(double x) {
  const double a = abs(x);
  double size;
  if constexpr (std::is_same_v<T, float>)
    size = scaled_i1_short(a);
  else
    size = scaled_i<series::i1_near, series::i1_far>(a, a / (1.0 + a));
  return copysign(size, x) + 0.0;  // zero for -0, as PyTorch
}
// Infinity times zero at infinity: nan, as PyTorch.
FACULA_SCALAR double unscaled_i(double scaled, double x) {
  const double root = exp_by_parts(0.5 * abs(x));
  return scaled * root * root;
}

// An exponential of numbers from -745 to 200, as good as a result of type T needs.
template <class T>
FACULA_SCALAR double exp_for(double x) {
  if constexpr (std::is_same_v<T, float>)
    return exp_short(x < -200.0 ? -200.0 : x);
  else
    return exp_by_parts(x);
}

constexpr double k_split = 2.0;

// K_v for 0 < x <= k_split: the logarithm with I_v, and what is left.
template <class T, int v>
FACULA_SCALAR double small_k(double x) {
  constexpr int terms = std::is_same_v<T, float> ? 8 : 0;
  constexpr double end = k_split * k_split;
  const double z = x * x, l = log_by_parts(0.5 * x);
  if constexpr (v == 0)
    return multiply_add(-l, series_sum<terms, series::i0_small>(z, 0.0, end),
                        series_sum<terms, series::k0_regular>(z, 0.0, end));
  else
    return multiply_add(l * x, series_sum<terms, series::i1_small>(z, 0.0, end),
                        series_sum<terms, series::k1_regular>(z, 0.0, end) / x);
}

// e^x K_v(x) for x > k_split.
template <class T, int v>
FACULA_SCALAR double scaled_large_k(double x) {
  constexpr int terms = std::is_same_v<T, float> ? 12 : 0;
  const double s = k_split / x, root = sqrt(x);
  if constexpr (v == 0)
    return series_sum<terms, series::k0>(s, 0.0, 1.0) / root;
  else
    return series_sum<terms, series::k1>(s, 0.0, 1.0) / root;
}

// For x > 0. Both ways are computed and one is taken, as below.
template <class T, int v, bool scaled>
FACULA_SCALAR double modified_k_fast(double x) {
  const bool is_small = x <= k_split;
  const double near = small_k<T, v>(is_small ? x : k_split),
               far = scaled_large_k<T, v>(is_small ? k_split : x);
  if constexpr (scaled) {
    const double grown = exp_by_parts(is_small ? x : 0.0);
    return is_small ? near * grown : far;
  } else {
    const double decay = exp_by_parts(-x);
    return is_small ? near : far * decay;
  }
}

template <class T>
FACULA_SCALAR bool modified_k_in_fast_range(T x) {
  return x > T(0) && x < infinity<T>;
}

// Of order v, times e^x if `scaled`.
template <int v, bool scaled, class T>
FACULA_SCALAR T modified_k(T x) {
  if (modified_k_in_fast_range(x)) [[likely]]
    return static_cast<T>(modified_k_fast<T, v, scaled>(x));
  if (x == T(0)) return infinity<T>;
  return x > T(0) ? T(0) : quiet_nan<T>;
}

// Beyond bessel_split J and Y are waves, before it series with J's first zero apart, which is a sum
// of two numbers. A float needs the first terms of each series only. Both ways are computed and one
// is taken: loops become vectors.
constexpr double bessel_split = 5.0;

struct SineCosine {
  double sine, cosine;
};
// As good as a result of type T needs.
template <class T = double>
FACULA_SCALAR SineCosine sine_cosine(const Reduced<double>& a) {
  constexpr bool is_float = std::is_same_v<T, float>;
  const double s = is_float ? sin_short(a.r) : sin_pair(a.r, a.lo).hi,
               c = is_float ? cos_short(a.r) : cos_pair(a.r, a.lo).hi;
  const double sine = (a.quadrant & 1) != 0 ? c : s, cosine = (a.quadrant & 1) != 0 ? s : c;
  return {(a.quadrant & 2) != 0 ? -sine : sine, ((a.quadrant + 1) & 2) != 0 ? -cosine : cosine};
}

// J_v(x) for 0 <= x <= bessel_split.
template <class T, int v>
FACULA_SCALAR double small_j(double x) {
  constexpr int terms = std::is_same_v<T, float> ? 10 : 0;
  constexpr double end = bessel_split * bessel_split;
  const double z = x * x;
  if constexpr (v == 0) {
    constexpr double zero = 2.404825557695773, rest = -1.176691651530894e-16;
    return series_sum<terms, series::j0_small>(z, 0.0, end) * ((x - zero) - rest) * (x + zero);
  } else {
    constexpr double zero = 3.8317059702075125, rest = -1.5269184090088067e-16;
    return series_sum<terms, series::j1_small>(z, 0.0, end) * ((x - zero) - rest) * (x + zero) * x;
  }
}

// Y_v(x) for 0 < x <= bessel_split. As powers these series would lose a digit.
template <class T, int v>
FACULA_SCALAR double small_y(double x) {
  constexpr int terms = std::is_same_v<T, float> ? 11 : 0;
  constexpr double end = bessel_split * bessel_split, two_over_pi = 0.6366197723675814;
  const double z = x * x, wave = log_by_parts(x) * small_j<T, v>(x);
  if constexpr (v == 0)
    return multiply_add(two_over_pi, wave, chebyshev<terms>(series::y0_small, z, 0.0, end));
  else
    return multiply_add(two_over_pi, wave - 1.0 / x,
                        chebyshev<terms>(series::y1_small, z, 0.0, end) * x);
}

// The waves P cos(t) - Q sin(t) of J or P sin(t) + Q cos(t) of Y, where t = x - (2 v + 1) pi / 4
// and `at` is of x itself: taking t off would round it.
template <class T, int v, bool is_y>
FACULA_SCALAR double bessel_wave(double x, SineCosine at) {
  constexpr int even = std::is_same_v<T, float> ? 9 : 0, odd = std::is_same_v<T, float> ? 11 : 0;
  const double over = bessel_split / x, s = over * over;
  const double sum = at.sine + at.cosine, less = at.sine - at.cosine;
  if constexpr (v == 0) {
    const double p = series_sum<even, series::j0_cosine>(s, 0.0, 1.0),
                 q = series_sum<odd, series::j0_sine>(s, 0.0, 1.0) * over;
    return (is_y ? p * less + q * sum : p * sum - q * less) / (root_of_pi * sqrt(x));
  } else {
    const double p = series_sum<even, series::j1_cosine>(s, 0.0, 1.0),
                 q = series_sum<odd, series::j1_sine>(s, 0.0, 1.0) * over;
    return (is_y ? q * less - p * sum : p * less + q * sum) / (root_of_pi * sqrt(x));
  }
}

// For |x| up to trig_limit, of J, and of Y for x > 0 besides.
template <class T, int v, bool is_y>
FACULA_SCALAR double bessel_fast(double x) {
  const double a = is_y ? x : abs(x), far = a > bessel_split ? a : bessel_split;
  const double wave = bessel_wave<T, v, is_y>(far, sine_cosine(reduce_fast<double>(far)));
  if constexpr (is_y) return a > bessel_split ? wave : small_y<T, v>(a);
  const double size = a > bessel_split ? wave : small_j<T, v>(a);
  return v == 1 && signbit(x) ? -size : size;
}

template <class T, int v, bool is_y>
FACULA_SCALAR_SLOW double bessel_far(double x) {
  if (is_y && x == 0.0) return -infinity<double>;
  if (!is_finite(x) || (is_y && x < 0.0)) return quiet_nan<double>;
  const double wave = bessel_wave<T, v, is_y>(abs(x), sine_cosine(reduce_far(abs(x))));
  return v == 1 && signbit(x) ? -wave : wave;
}

template <int v, bool is_y, class T>
FACULA_SCALAR bool bessel_in_fast_range(T x) {
  return abs(x) <= T(trig_limit) && (!is_y || x > T(0));
}

template <int v, bool is_y, class T>
FACULA_SCALAR T bessel(T x) {
  if (bessel_in_fast_range<v, is_y>(x)) [[likely]]
    return static_cast<T>(bessel_fast<T, v, is_y>(x));
  return static_cast<T>(bessel_far<T, v, is_y>(x));
}

// Ai is a series between the first waves and 1, decays by e^-zeta beyond it, and before it is
// P cos(t) + Q sin(t) at t = zeta - pi / 4, where zeta = 2/3 |x|^(3/2). All three are computed and
// one is taken. The angle is of zeta itself: taking pi / 4 off would round it.
constexpr double airy_waves_begin = -4.5, airy_limit = 1e4;

// e^zeta times the part that decays; s = 1 / zeta up to 3/2.
template <class T>
FACULA_SCALAR double airy_shape(double s) {
  constexpr bool is_float = std::is_same_v<T, float>;
  const double far = series_sum<is_float ? 15 : 0, series::airy_far>(s, 0.0, 0.75),
               near = series_sum<is_float ? 8 : 0, series::airy_near>(s, 0.75, 1.5);
  return s < 0.75 ? far : near;
}
template <class T>
FACULA_SCALAR double airy_waves(double zeta, double s) {
  constexpr double end = 0.0246913580246913580;  // 1 / zeta^2 at airy_waves_begin
  constexpr bool is_float = std::is_same_v<T, float>;
  const SineCosine at = sine_cosine<T>(reduce_fast<T>(zeta));
  const double p = series_sum<is_float ? 6 : 0, series::airy_cosine>(s * s, 0.0, end),
               q = series_sum<is_float ? 7 : 0, series::airy_sine>(s * s, 0.0, end) * s;
  return root_of_half * (p * (at.cosine + at.sine) + q * (at.sine - at.cosine));
}

template <class T>
FACULA_SCALAR double airy_fast(double x) {
  const double middle = series_sum<0, series::airy_middle>(x, airy_waves_begin, 1.0);
  const double a = abs(x), root = sqrt(a), zeta = 2.0 / 3.0 * a * root, s = 1.0 / zeta;
  const double decay = 0.5 * exp_for<T>(zeta > 745.0 ? -745.0 : -zeta) * airy_shape<T>(s);
  const double outer = (x > 0.0 ? decay : airy_waves<T>(zeta, s)) / (root_of_pi * sqrt(root));
  return x > airy_waves_begin && x < 1.0 ? middle : outer;
}

template <class T>
FACULA_SCALAR bool airy_in_fast_range(T x) {
  return abs(x) <= T(airy_limit);
}
// Waves too far out for the reduction of the angle in one step.
FACULA_SCALAR_SLOW double airy_far_out(double x) {
  if (!is_finite(x)) return quiet_nan<double>;
  if (x > 0.0) return 0.0;
  const double a = -x, root = sqrt(a), zeta = 2.0 / 3.0 * a * root;
  return cos(zeta - 0.7853981633974483) / (root_of_pi * sqrt(root));
}

}  // namespace detail

template <class T>
FACULA_SCALAR T i0(T x) {
  return static_cast<T>(detail::unscaled_i(detail::scaled_i0<T>(x), x));
}
template <class T>
FACULA_SCALAR T i0e(T x) {
  return static_cast<T>(detail::scaled_i0<T>(x));
}
template <class T>
FACULA_SCALAR T i1(T x) {
  return static_cast<T>(detail::unscaled_i(detail::scaled_i1<T>(x), x));
}
template <class T>
FACULA_SCALAR T i1e(T x) {
  return static_cast<T>(detail::scaled_i1<T>(x));
}
// sin(x) / x, one at zero, zero at infinity.
template <class T>
FACULA_SCALAR T spherical_bessel_j0_fast(T x) {
  const double v = x, quotient = sin_fast(v) / v;
  return abs(x) < T(1e-8) ? T(1) : static_cast<T>(quotient);
}
template <class T>
FACULA_SCALAR T spherical_bessel_j0(T x) {
  if (trig_in_fast_range(x)) [[likely]]
    return spherical_bessel_j0_fast(x);
  if (is_inf(x)) return T(0);
  const double v = x;
  return static_cast<T>(sin(v) / v);
}
template <class T>
FACULA_SCALAR T airy_ai(T x) {
  if (detail::airy_in_fast_range(x)) [[likely]]
    return static_cast<T>(detail::airy_fast<T>(x));
  return static_cast<T>(detail::airy_far_out(x));
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
