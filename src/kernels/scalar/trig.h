// sin, cos, tan, sinc. Bounds (units in the last place): sin, cos 0.55; tan 0.6; float results
// 0.51.
//
// sin and cos hold everywhere but branch to a slow reduction beyond trig_limit. A loop that is to
// vectorise checks a block with trig_in_fast_range and calls sin_fast and so on: the same bits.
#pragma once
#include "kernels/scalar/pack.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

constexpr double trig_limit = 1.0e6;

// An angle less the nearest multiple of pi/2, and the low bits of that multiple.
template <class T>
struct Reduced {
  T r, lo;
  Bits<T> quadrant;
};

// Subtracts k pi/2 in three parts. What the first leaves is a number: both are multiples of the
// same power of two. For a float result (L) the parts of two numbers do.
template <class L, class T>
FACULA_SCALAR Reduced<T> reduce_fast(T x) {
  constexpr double magic = Ieee<T>::round_magic;
  const T shifted = multiply_add(x, 0.6366197723675814, magic), k = shifted - T(magic);
  const T a = fma(k, -0x1.921fb54442d18p+0, x);
  if constexpr (std::is_same_v<L, float>) {
    return {multiply_add(k, -0x1.1a62633145c07p-54, a), T(0), to_bits(shifted)};
  } else {
    const auto p = two_prod(k, 0x1.1a62633145c07p-54), b = two_sum(a, -p.hi);
    return {b.hi, multiply_add(k, 0x1.f1976b7ed8fbcp-110, b.lo - p.lo), to_bits(shifted)};
  }
}

// 64 bits of 2/pi, from bit `start` behind the binary point; start may be negative.
FACULA_SCALAR_SLOW uint64_t two_over_pi_bits(int start) {
  constexpr uint64_t words[] = {0,
                                0xa2f9836e4e441529,
                                0xfc2757d1f534ddc0,
                                0xdb6295993c439041,
                                0xfe5163abdebbc561,
                                0xb7246e3a424dd2e0,
                                0x06492eea09d1921c,
                                0xfe1deb1cb129a73e,
                                0xe88235f52ebb4484,
                                0xe99c7026b45f7e41,
                                0x3991d639835339f4,
                                0x9c845f8bbdf9283b,
                                0x1ff897ffde05980f,
                                0xef2f118b5a0a6d1f,
                                0x6d367ecf27cb09b7,
                                0x4f463f669e5fea2d,
                                0x7527bac7ebe5f17b,
                                0x3d0739f78a5292ea,
                                0x6bfb5fb11f8d5d08,
                                0x56033046fc7b6bab};
  const int position = start + 64, word = position / 64, shift = position % 64;
  return shift == 0 ? words[word] : (words[word] << shift) | (words[word + 1] >> (64 - shift));
}

// Payne and Hanek: the fraction of x 2/pi modulo 4 from 192 bits of 2/pi that matter for x.
FACULA_SCALAR_SLOW Reduced<double> reduce_far(double x) {
  using Wide = unsigned __int128;
  if (!(abs(x) < infinity<double>)) return {quiet_nan<double>, 0.0, 0};
  const uint64_t bits = to_bits(x), m = (bits & 0xfffffffffffff) | 0x10000000000000;
  const int start = static_cast<int>((bits >> 52) & 0x7ff) - 1075 - 2;
  const Wide low = static_cast<Wide>(m) * two_over_pi_bits(start + 128);
  const Wide middle = static_cast<Wide>(m) * two_over_pi_bits(start + 64) + (low >> 64);
  const uint64_t high = m * two_over_pi_bits(start) + static_cast<uint64_t>(middle >> 64);
  // The upper two bits are whole quarters of a turn; the others, rounded to nearest, the fraction.
  uint64_t quadrant = (high >> 62) + ((high >> 61) & 1);
  Wide fraction = (static_cast<Wide>((high << 2) | (static_cast<uint64_t>(middle) >> 62)) << 64) |
                  ((static_cast<uint64_t>(middle) << 2) | (static_cast<uint64_t>(low) >> 62));
  const bool negative = (fraction >> 127) != 0;
  if (negative) fraction = -fraction;
  double unit = 0x1p-128;
  for (; (fraction >> 127) == 0 && fraction != 0; fraction <<= 1) unit *= 0.5;
  const double hi = static_cast<double>(static_cast<uint64_t>(fraction >> 75)) * 0x1p75;
  const double rest = static_cast<double>(static_cast<uint64_t>((fraction << 53) >> 64)) * 0x1p11;
  const auto p = two_prod(hi * unit, 0x1.921fb54442d18p+0);
  const auto r = fast_two_sum(
      p.hi, p.lo + (hi * unit * 0x1.1a62633145c07p-54 + rest * unit * 0x1.921fb54442d18p+0));
  const bool flip = negative != signbit(x);
  if (signbit(x)) quadrant = 0 - quadrant;
  return {flip ? -r.hi : r.hi, flip ? -r.lo : r.lo, quadrant};
}

// sin and cos of r + lo, |r| <= pi/4, as sums: the terms r^3 / 6 and r^2 / 2 with their roundings.
template <class T>
FACULA_SCALAR Pair<T> sin_pair(T r, T lo) {
  constexpr double sixth = -0x1.5555555555555p-3, sixth_rest = -0x1.5555555555555p-57;
  const T z = r * r, z_lo = fma(r, r, -z);
  const T p = z * sixth, cube = r * p;
  const T p_lo = multiply_add(z_lo, sixth, multiply_add(z, sixth_rest, fma(z, sixth, -p)));
  const T s = poly(z, 0.008333333333333323, -0.00019841269841254988, 2.7557319214148736e-06,
                   -2.5052104900508475e-08, 1.6058365189283742e-10, -7.578625306222819e-13);
  const T small = multiply_add(r, p_lo, fma(r, p, -cube)) + multiply_add(lo, z * -0.5, lo);
  const auto sum = fast_two_sum(r, cube);
  return fast_two_sum(sum.hi, sum.lo + multiply_add(z * z * r, s, small));
}

template <class T>
FACULA_SCALAR Pair<T> cos_pair(T r, T lo) {
  const T z = r * r, z_lo = fma(r, r, -z), half = z * 0.5, w = T(1) - half;
  const T c = poly(z, 0.041666666666666664, -0.0013888888888888874, 2.480158730157138e-05,
                   -2.7557319215325945e-07, 2.087675435472571e-09, -1.1470291947234421e-11,
                   4.7380485983393074e-14);
  const T slope = multiply_add(z * r, -0.16666666666666666, r);  // sin(r)
  const T small = multiply_add(z_lo, -0.5, -(lo * slope));
  return fast_two_sum(w, ((T(1) - w) - half) + multiply_add(z * z, c, small));
}

// The same in one number, for a float result.
template <class T>
FACULA_SCALAR T sin_short(T r) {
  const T z = r * r, s = poly(z, -0.16666666641425223, 0.008333329362136859, -0.000198393270965423,
                              2.7182369510683733e-06);
  return multiply_add(r * z, s, r);
}
template <class T>
FACULA_SCALAR T cos_short(T r) {
  const T z = r * r, c = poly(z, 0.04166666662250884, -0.0013888883725342131, 2.47995124373514e-05,
                              -2.7209598781521993e-07);
  return multiply_add(z * z, c, multiply_add(z, -0.5, 1.0));
}

// Its second quarter turns the sign.
template <class T>
FACULA_SCALAR T with_sign_of(T y, Bits<T> quadrant) {
  return from_bits<T>(to_bits(y) ^ ((quadrant & Bits<T>(2)) << (8 * sizeof(lane_t<T>) - 2)));
}

template <class L, class T>
FACULA_SCALAR T sin_reduced(const Reduced<T>& a, int quarters = 0) {
  const auto quadrant = a.quadrant + Bits<T>(quarters);
  const auto odd = has_bits(quadrant, 1);
  if constexpr (std::is_same_v<L, float>) {
    return with_sign_of(pick(odd, cos_short(a.r), sin_short(a.r)), quadrant);
  } else {
    return with_sign_of(pick(odd, cos_pair(a.r, a.lo).hi, sin_pair(a.r, a.lo).hi), quadrant);
  }
}

// sin / cos. In double both are sums whose rounding error enters the quotient to first order.
template <class L, class T>
FACULA_SCALAR T tan_reduced(const Reduced<T>& a) {
  const auto odd = has_bits(a.quadrant, 1);
  if constexpr (std::is_same_v<L, float>) {
    const T s = sin_short(a.r), c = cos_short(a.r);
    return quotient(pick(odd, -c, s), pick(odd, s, c));
  } else {
    const auto s = sin_pair(a.r, a.lo), c = cos_pair(a.r, a.lo);
    const T num = pick(odd, -c.hi, s.hi), num_lo = pick(odd, -c.lo, s.lo);
    const T den = pick(odd, s.hi, c.hi), den_lo = pick(odd, s.lo, c.lo);
    const T inverse = T(1) / den, q = num * inverse;
    return q + (fma(-q, den, num) + (num_lo - q * den_lo)) * inverse;
  }
}

// f(x) of doubles; of floats in double.
template <class T, class F>
FACULA_SCALAR T in_double(T x, F f) {
  if constexpr (of_floats<T>)
    return by_doubles(x, f);
  else
    return f(x);
}

}  // namespace detail

template <class T>
FACULA_SCALAR bool trig_in_fast_range(T x) {
  return abs(x) <= T(detail::trig_limit);
}

template <class T>
FACULA_SCALAR T sin_fast(T x) {
  using L = lane_t<T>;
  const T y = detail::in_double(x, [](auto v) __attribute__((always_inline)) {
    return detail::sin_reduced<L>(detail::reduce_fast<L>(v));
  });
  return pick(x == T(0), x, y);
}
template <class T>
FACULA_SCALAR T cos_fast(T x) {
  using L = lane_t<T>;
  return detail::in_double(x, [](auto v) __attribute__((always_inline)) {
    return detail::sin_reduced<L>(detail::reduce_fast<L>(v), 1);
  });
}
template <class T>
FACULA_SCALAR T tan_fast(T x) {
  using L = lane_t<T>;
  const T y = detail::in_double(x, [](auto v) __attribute__((always_inline)) {
    return detail::tan_reduced<L>(detail::reduce_fast<L>(v));
  });
  return pick(x == T(0), x, y);
}

template <class T>
FACULA_SCALAR T sin(T x) {
  if (trig_in_fast_range(x)) [[likely]]
    return sin_fast(x);
  return static_cast<T>(detail::sin_reduced<T>(detail::reduce_far(static_cast<double>(x))));
}
template <class T>
FACULA_SCALAR T cos(T x) {
  if (trig_in_fast_range(x)) [[likely]]
    return cos_fast(x);
  return static_cast<T>(detail::sin_reduced<T>(detail::reduce_far(static_cast<double>(x)), 1));
}
template <class T>
FACULA_SCALAR T tan(T x) {
  if (trig_in_fast_range(x)) [[likely]]
    return tan_fast(x);
  return static_cast<T>(detail::tan_reduced<T>(detail::reduce_far(static_cast<double>(x))));
}

// For results of half types, whose numbers up to this limit stay some 2^-12 away from the zeros of
// sin and cos: good to 2^-20 of the result.
constexpr float coarse_trig_limit = 16384.0f;

FACULA_SCALAR bool coarse_trig_in_range(float x) { return abs(x) <= coarse_trig_limit; }

// sin(x + quarters * pi / 2).
FACULA_SCALAR float sin_coarse(float x, uint32_t quarters) {
  using namespace detail;
  // Three parts of pi/2: the products of the first two with k are exact, with fma or without.
  constexpr float magic = Ieee<float>::round_magic;
  const float shifted = multiply_add(x, 0.63661977f, magic), k = shifted - magic;
  const float a = multiply_add(k, -0x1.92p+0f, x), b = multiply_add(k, -0x1.fbp-12f, a);
  const float r = multiply_add(k, -0x1.5110b4p-22f, b), z = r * r;
  const uint32_t quadrant = to_bits(shifted) - to_bits(magic) + quarters;
  const float s = multiply_add(r * z, poly(z, -0.16666655f, 0.00833218f, -0.00019517f), r);
  const float c = multiply_add(z * z, poly(z, 4.16666469e-02f, -1.38873675e-03f, 2.44384515e-05f),
                               1.0f - 0.5f * z);
  const float y = (quadrant & 1) != 0 ? c : s;
  return from_bits<float>(to_bits(y) ^ ((quadrant & 2) << 30));
}

// sin(pi x) / (pi x), one at zero.
template <class T>
FACULA_SCALAR T sinc(T x) {
  const T p = T(3.14159265358979324) * x;
  return x == T(0) ? T(1) : sin(p) / p;
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
