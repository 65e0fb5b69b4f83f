// exp and what is built on it alone: exp2, expm1, sigmoid, sinh, cosh, tanh.
// Bounds are in units in the last place of the result; those of double hold with fma or without.
#pragma once
#include "kernels/scalar/exp_log_tables.h"
#include "kernels/scalar/tanh_table.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// e^x = 2^k (1 + r + q): |r| <= ln(2)/2, and q gathers what is small.
template <class T>
struct ExpParts {
  T k, r, q;
};

// (e^r - 1 - r - r^2 / 2) / r^3
template <class T>
FACULA_SCALAR T exp_cubic(T r) {
  if constexpr (of_floats<T>) {
    return poly(r, 0.16666667f, 0.041666273f, 0.008333261f, 0.0013946054f, 0.00019920654f);
  } else {
    return poly(r, 0.16666666666666677, 0.04166666666666661, 0.008333333333321414,
                0.0013888888888923831, 0.00019841269886700124, 2.480158723754308e-05,
                2.755724360111651e-06, 2.755735275805117e-07, 2.510926024081542e-08,
                2.0889593220587294e-09);
  }
}
template <class T>
FACULA_SCALAR T exp_tail(T r) {  // (e^r - 1 - r) / r^2
  return multiply_add(r, exp_cubic(r), lane_t<T>(0.5));
}

// Beyond these the result is 0 or infinity in any rounding; the range keeps k small.
template <class T>
FACULA_SCALAR T clamp_exponent(T x) {
  if constexpr (of_floats<T>)
    return between(x, -104.0f, 89.0f);
  else
    return between(x, -746.0, 710.0);
}

// The parts of e^(x + lo), lo far smaller than x; x clamped.
template <class T>
FACULA_SCALAR ExpParts<T> exp_parts(T x, T lo = T(0)) {
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T ln2_hi = is_float ? T(0x1.62e3p-1) : T(0x1.62e42fee00000p-1);
  constexpr T ln2_lo = is_float ? T(0x1.2fefa39ef3579p-17) : T(0x1.a39ef35793c76p-33);
  const T k = round_small(x * T(1.4426950408889634));
  const T hi = x - k * ln2_hi, tail = k * ln2_lo - lo, r = hi - tail;
  return {k, r, ((hi - r) - tail) + r * r * exp_tail(r)};
}

template <class T>
FACULA_SCALAR T exp_value(const ExpParts<T>& p) {
  return scale(T(1) + (p.r + p.q), p.k);
}

// For float results, in double: e^r - 1 for |r| <= ln(2)/2 to 2^-34 of it.
template <class T>
FACULA_SCALAR T expm1_reduced(T r) {
  const T q = poly(r, 0.5000000076869616, 0.166666668734167, 0.04166627135105789,
                   0.008333260788835683, 0.0013946054070753363, 0.00019920653776047108);
  return multiply_add(r * r, q, r);
}
// k with x = k ln(2) + r, and 2^k.
template <class T>
struct ShortArgument {
  T r, power;
};
template <class T>
FACULA_SCALAR ShortArgument<T> short_argument(T x) {
  constexpr double magic = Ieee<T>::round_magic;
  constexpr auto bias = static_cast<Bits<double>>(Ieee<double>::bias);
  const T shifted = multiply_add(x, 1.4426950408889634, magic), k = shifted - T(magic);
  const T power = from_bits<T>((to_bits(shifted) + Bits<T>(bias)) << Ieee<double>::mantissa_bits);
  return {multiply_add(k, -0x1.62e42fefa39efp-1, x), power};
}
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T exp_short(T x) {
  const auto a = short_argument(x);
  return multiply_add(expm1_reduced(a.r), a.power, a.power);
}
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T expm1_short(T x) {
  const auto a = short_argument(x);
  return multiply_add(a.power, expm1_reduced(a.r), a.power - T(1));
}

// x = k ln(2) + wide + rest, where wide is exact and rest small, and the bits of integer k; x
// clamped, and shifted x / ln(2) rounded by the addition of a large number.
template <class T>
struct ExpSplit {
  T wide, rest, k;
  Bits<T> bits;
};
#if defined(__FMA__)
template <class L>
inline constexpr L ln2_first = std::is_same_v<L, float> ? L(0x1.62e43p-1) : L(0x1.62e42fefa39efp-1);
template <class L>
inline constexpr L ln2_rest =
    std::is_same_v<L, float> ? L(-0x1.05c610ca86c39p-29) : L(0x1.abc9e3b39803fp-56);
#else  // few bits, so that their product with k is exact
template <class L>
inline constexpr L ln2_first = std::is_same_v<L, float> ? L(0x1.62e3p-1) : L(0x1.62e42fee00000p-1);
template <class L>
inline constexpr L ln2_rest =
    std::is_same_v<L, float> ? L(0x1.2fefa39ef3579p-17) : L(0x1.a39ef35793c76p-33);
#endif
template <class T>
FACULA_SCALAR ExpSplit<T> exp_split_at(T x, T shifted) {
  using L = lane_t<T>;
  constexpr L magic = Ieee<T>::round_magic;
  const T k = shifted - magic;
  const T wide = multiply_add(k, -ln2_first<L>, x), rest = k * T(-ln2_rest<L>);
  const auto bits = to_bits(shifted) - to_bits(T(magic));
#if defined(__FMA__)
  return {wide, rest, k, bits};
#else
  const auto sum = fast_two_sum(wide, rest);
  return {sum.hi, sum.lo, k, bits};
#endif
}
template <class T>
FACULA_SCALAR ExpSplit<T> exp_split(T x) {
  constexpr lane_t<T> log2_e = 1.4426950408889634, magic = Ieee<T>::round_magic;
  return exp_split_at(x, multiply_add(x, log2_e, magic));
}
// The same with k at least -24 (-53), where 1 - 2^k is exact: r is then down to -1.4.
template <class T>
FACULA_SCALAR ExpSplit<T> exp_split_of_rest(T x) {
  constexpr lane_t<T> log2_e = 1.4426950408889634, magic = Ieee<T>::round_magic;
  constexpr lane_t<T> least = magic - (Ieee<T>::mantissa_bits + 1);
  return exp_split_at(x, at_least(multiply_add(x, log2_e, magic), least));
}

// x = k ln(2) + r + lost, |r| <= ln(2)/2, and the bits of integer k; x clamped.
template <class T>
struct ExpArgument {
  T r, lost, k;
  Bits<T> bits;
};
template <class T>
FACULA_SCALAR ExpArgument<T> exp_argument(T x) {
  const auto p = exp_split(x);
#if defined(__FMA__)
  const T r = multiply_add(p.k, -ln2_rest<lane_t<T>>, p.wide);
  return {r, multiply_add(p.k, -ln2_rest<lane_t<T>>, p.wide - r), p.k, p.bits};
#else
  return {p.wide, p.rest, p.k, p.bits};
#endif
}

// The same for x + lo, lo far smaller than x.
template <class T>
FACULA_SCALAR ExpArgument<T> exp_argument(T x, std::type_identity_t<T> lo) {
  const auto p = exp_argument(x);
  const auto sum = fast_two_sum(p.r, p.lost + lo);
  return {sum.hi, sum.lo, p.k, p.bits};
}

// x = k + r / ln(2) for 2^x; x clamped.
template <class T>
FACULA_SCALAR ExpArgument<T> exp2_argument(T x, std::type_identity_t<T> lo = 0.0) {
  constexpr double ln2 = 0x1.62e42fefa39efp-1, ln2_rest = 0x1.abc9e3b39803fp-56;
  constexpr double magic = Ieee<T>::round_magic;
  const T shifted = x + magic, k = shifted - magic, f = x - k, r = f * ln2;
  const T lost = (f * ln2_rest + lo * ln2) + fma(f, ln2, -r);
  const auto sum = fast_two_sum(r, lost);
  return {sum.hi, sum.lo, k, to_bits(shifted) - to_bits(T(magic))};
}

// base + e^(r + lost) - 1 as a sum good to some five bits more than T; base is 0 or at least 1/2.
template <class T>
FACULA_SCALAR Pair<T> exp_sum(std::type_identity_t<T> base, T r, std::type_identity_t<T> lost) {
  const auto s = fast_two_sum<T>(base, r);
  const T z = r * r, z_lo = fma(r, r, -z);
  const auto t = fast_two_sum(s.hi, T(0.5) * z);
  const T tail = multiply_add(T(0.5), z_lo, multiply_add(r, lost, lost));
  return fast_two_sum(t.hi, t.lo + (s.lo + multiply_add(z * r, exp_cubic(r), tail)));
}

// 2^k from the bits of k, whose power is normal.
template <class T>
FACULA_SCALAR T power_of_bits(Bits<T> k) {
  constexpr auto bias = static_cast<Bits<lane_t<T>>>(Ieee<T>::bias);
  return from_bits<T>((k + Bits<T>(bias)) << Ieee<T>::mantissa_bits);
}

// y 2^k from the bits of k, in two steps, so that subnormal results round once.
template <class T>
FACULA_SCALAR T scale_bits(T y, Bits<T> k) {
  constexpr int mantissa = Ieee<T>::mantissa_bits;
  constexpr auto bias = static_cast<Bits<T>>(Ieee<T>::bias);
  const auto n = static_cast<std::make_signed_t<Bits<T>>>(k);
  const auto half = static_cast<Bits<T>>(n >> 1), rest = k - half;
  return y * from_bits<T>((half + bias) << mantissa) * from_bits<T>((rest + bias) << mantissa);
}

// y 2^k for the k of an argument.
template <class T, template <class> class Argument>
FACULA_SCALAR T scaled(T y, const Argument<T>& p) {
  return scale_bits(y, p.bits);
}
#if defined(FACULA_PACKS)
template <class T, int U, template <class> class Argument>
FACULA_SCALAR Pack<T, U> scaled(Pack<T, U> y, const Argument<Pack<T, U>>& p) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_scalef_ps(y.v[i], p.k.v[i]);
    else
      return _mm512_scalef_pd(y.v[i], p.k.v[i]);
  });
}
#endif

// e^x = 2^floor(k) 2^(j / 16) (1 + small), j being the last four bits of 16 k: |small| < 0.022 has
// no need of a low part. x clamped.
template <class T>
FACULA_SCALAR T exp_by_table(T x) {
  using L = lane_t<T>;
  using Table = ExpTable<L>;
  // By a sixteenth of the number that rounds to integers, k is rounded to sixteenths.
  constexpr L log2_e = 1.4426950408889634, magic = Ieee<L>::round_magic / 16;
  const T shifted = multiply_add(x, log2_e, magic), k = shifted - T(magic);
  const T r = multiply_add(k, -ln2_rest<L>, multiply_add(k, -ln2_first<L>, x));
  const auto j = to_bits(shifted);
  T curve;  // (e^r - 1 - r) / r^2
  if constexpr (of_floats<T>)
    curve = poly(r, 0.5f, 0.16667005f, 0.041667655f);
  else
    curve = poly(r, 0.5, 0.16666666666666669, 0.04166666666359425, 0.008333333332991954,
                 0.001388906347556763, 0.00019841463826261545);
  const T power = entry_of(Table::power, j);
  const T y = multiply_add(power, r + multiply_add(r * r, curve, entry_of(Table::rest, j)), power);
  // floor(k); negative integers are shifted right as positive ones.
  const auto whole = ((j - to_bits(T(magic - L(2048)))) >> 4) - Bits<T>(2048);
  return scaled(y, ExpArgument<T>{r, r, k, whole});
}

// e^x with fma: the reduced argument is one product less. x clamped.
template <class T>
FACULA_SCALAR T exp_fma(T x) {
  const ExpArgument<T> p = exp_argument(x);
  return scaled(T(1) + (p.r + multiply_add(p.r * p.r, exp_tail(p.r), p.lost)), p);
}

// e^(x + lo); x clamped.
template <class T>
FACULA_SCALAR T exp_fine(T x, std::type_identity_t<T> lo) {
  const auto p = exp_argument(x, lo);
  return scaled(exp_sum(T(1), p.r, p.lost).hi, p);
}

// e^x - 1 = 2^k (hi + lo); x clamped. From |k| = 53 (24) on, 1 - 2^-k has a rest of its own.
template <class T>
FACULA_SCALAR Pair<T> expm1_sum(const ExpArgument<T>& p, Pair<T> base) {
  const auto sum = exp_sum(base.hi, p.r, p.lost);
  return fast_two_sum(sum.hi, sum.lo + base.lo);
}
template <class T>
FACULA_SCALAR Pair<T> expm1_sum(const ExpArgument<T>& p) {
  return expm1_sum(p, two_sum(T(1), -power_of_two(-at_most(p.k, 100.0))));
}

// 1 / (1 + e^-x) with fma. Numerator and denominator are scaled alike, so that 2^k is one normal
// power wherever it counts, even where the result is subnormal.
template <class T>
FACULA_SCALAR T sigmoid_fma(T x) {
  using L = lane_t<T>;
  constexpr bool is_float = of_floats<T>;
  constexpr L low = is_float ? L(-60) : L(-600), high = is_float ? L(105) : L(750);
  constexpr L unit = is_float ? L(0x1p-30) : L(0x1p-70);
  constexpr auto bias = static_cast<Bits<L>>(Ieee<L>::bias) - (is_float ? 30 : 70);
  const ExpArgument<T> p = exp_argument(between(-x, low, high));
  const T y = T(1) + multiply_add(p.r * p.r, exp_tail(p.r), p.r);
  const T power = from_bits<T>((p.bits + Bits<T>(bias)) << Ieee<T>::mantissa_bits);
  return T(unit) / multiply_add(y, power, T(unit));
}

}  // namespace detail

// e^x to 0.9 units in the last place, in T alone: for what keeps fewer bits.
template <class T>
FACULA_SCALAR T exp_coarse(T x) {
#if defined(__FMA__)
  return detail::exp_fma(detail::clamp_exponent(x));
#else
  return detail::exp_value(detail::exp_parts(detail::clamp_exponent(x)));
#endif
}

// e^x without a look-up, to the bounds of exp: for loops that run on no packs, where look-ups are
// gathers.
template <class T>
FACULA_SCALAR T exp_by_parts(T x) {
#if !defined(__FMA__)
  if constexpr (of_floats<T>) return exp_coarse(x);
#endif
  const auto p = detail::exp_split(detail::clamp_exponent(x));
  // What the leading sums lose goes with the small terms; the rest of x is a factor 1 + rest.
  const T first = T(1) + p.wide, square = p.wide * p.wide;
  const T high = detail::multiply_add(square, T(0.5), first);
  const T lost = detail::multiply_add(square, T(0.5), first - high) + (p.wide - (first - T(1)));
  const T low = detail::multiply_add(square * p.wide, detail::exp_cubic(p.wide), lost);
  return detail::scaled(high + detail::multiply_add(p.rest, high + low, low), p);
}

// e^x. Bounds: float 0.57 (subnormal results 0.77; without fma 0.9), double 0.55.
template <class T>
FACULA_SCALAR T exp(T x) {
#if defined(__AVX512F__)
  return detail::exp_by_table(detail::clamp_exponent(x));
#else
  return exp_by_parts(x);
#endif
}

// 2^x. Bounds: float 0.6 (subnormal results 0.75; without fma 0.85), double 0.65.
template <class T>
FACULA_SCALAR T exp2(T x) {
  using L = lane_t<T>;
  constexpr L low = of_floats<T> ? L(-151) : L(-1076), high = of_floats<T> ? L(129) : L(1025);
  constexpr L magic = detail::Ieee<T>::round_magic, ln2 = L(0.6931471805599453);
  const T bounded = between(x, low, high);
  const T shifted = bounded + magic, k = shifted - magic, f = bounded - k;
  // The leading product's rounding is carried along, with the rest of ln 2.
  const T s = detail::multiply_add(f, ln2, L(1)), lost = detail::fma(f, ln2, T(1) - s);
  T q;
  if constexpr (of_floats<T>)
    q = detail::poly(f, -1.9046542e-09f, 0.2402265f, 0.055504117f, 0.009618077f, 0.0013332234f,
                     0.0001545406f, 1.5671478e-05f);
  else
    q = detail::poly(f, 2.3190468138462996e-17, 0.24022650695910122, 0.05550410866482072,
                     0.009618129107596999, 0.0013333558146689242, 0.00015403530454071996,
                     1.5252733543933069e-05, 1.3215436597927261e-06, 1.0178185804945827e-07,
                     7.073582357572497e-09, 4.43614281290288e-10);
  const T y = s + detail::multiply_add(f, q, lost);
  const auto bits = detail::to_bits(shifted) - detail::to_bits(T(magic));
  return detail::scaled(y, detail::ExpArgument<T>{f, lost, k, bits});
}

// e^x - 1, accurate near zero. Bounds: float 0.51, double 0.63.
template <class T>
FACULA_SCALAR T expm1(T x) {
  using L = lane_t<T>;
  const T bounded = between(x, L(-40), of_floats<T> ? L(89) : L(710));
  T y;
  if constexpr (of_floats<T>) {
    y = by_doubles(bounded,
                   [](auto v) __attribute__((always_inline)) { return detail::expm1_short(v); });
  } else {
    const auto p = detail::exp_argument(bounded);
    y = detail::scaled(detail::expm1_sum(p).hi, p);
  }
  return pick(x == T(0), x, y);
}

// 1 / (1 + e^-x), without overflow on either side. Bound: 2.0.
template <class T>
FACULA_SCALAR T sigmoid(T x) {
#if defined(__FMA__)
  return detail::sigmoid_fma(x);
#else
  const T e = exp_coarse(-abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
#endif
}

#if defined(__AVX512F__)
namespace detail {
// tanh of floats without exp or quotient: half the time where a look-up is one instruction.
template <class T>
FACULA_SCALAR T tanh_by_table(T x) {
  using Table = TanhTable;
  constexpr uint32_t first = Table::first;
  const T a = at_most(abs(x), Table::end);
  const auto upper = to_bits(a) >> (Ieee<float>::mantissa_bits - 2);
  const auto index = index_between(upper, first, first + 31) - Bits<T>(first);
  const T t = a - entry_of(Table::center, index);
  T slope = entry_of(Table::slope[5], index);
#pragma GCC unroll 5
  for (int k = 4; k >= 0; --k) slope = multiply_add(t, slope, entry_of(Table::slope[k], index));
  const T value = multiply_add(t, entry_of(Table::own, index), entry_of(Table::value, index));
  return copysign(multiply_add(t, slope, value), x);
}
}  // namespace detail
#endif

// tanh(x) without a look-up, to the bounds of tanh: for loops that run on no packs.
template <class T>
FACULA_SCALAR T tanh_by_parts(T x) {
  constexpr lane_t<T> flat = of_floats<T> ? 10 : 20;  // beyond it the result is 1
  const auto p = detail::exp_split_of_rest(T(-2) * at_most(abs(x), flat));
  const T power = detail::power_of_bits<T>(p.bits), base = T(1) - power;
  // n = 1 - e^-2|x| as a sum, and n / (2 - n).
  const T high = detail::multiply_add(-power, p.wide, base);
  const T square = p.wide * p.wide, half = T(-0.5) * power;
  const T sum = detail::multiply_add(half, square, high);
  const T lost = detail::multiply_add(-power, p.wide, base - high) +
                 detail::multiply_add(half, square, high - sum);
  const T square_lo = detail::fma(p.wide, p.wide, -square);
  const T small = detail::multiply_add(square * p.wide, detail::exp_cubic(p.wide), p.rest);
  const T low = detail::multiply_add(half, square_lo, detail::multiply_add(-power, small, lost));
  const auto n = detail::fast_two_sum(sum, low);
  const T inverse = T(1) / (T(2) - n.hi), q = n.hi * inverse;
  const T left = detail::fma(q, n.hi, n.hi - T(2) * q) + detail::multiply_add(q, n.lo, n.lo);
  return copysign(detail::multiply_add(left, inverse, q), x);
}

// Bounds: float 0.57 (without packs 0.62), double 0.68.
template <class T>
FACULA_SCALAR T tanh(T x) {
#if defined(__AVX512F__)
  if constexpr (of_floats<T>) return detail::tanh_by_table(x);
#endif
  return tanh_by_parts(x);
}

// Bounds: float 0.51, double 0.65.
template <class T>
FACULA_SCALAR T sinh(T x) {
  constexpr T limit = std::is_same_v<T, float> ? T(90) : T(711);
  const T a = abs(x);
  const double bounded = a > limit ? limit : a;
  if constexpr (std::is_same_v<T, float>) {
    const double t = detail::expm1_short(bounded);
    return copysign(static_cast<float>(0.5 * (t + t / (1.0 + t))), x);
  } else {
    const auto p = detail::exp_argument(bounded);
    const auto sum = detail::expm1_sum(p);
    // h = (e^a - 1) / 2, so that the result overflows only where it must; sinh a = h + h / (1 + 2
    // h), each with what its rounding left. Past 20 the second term is 1/2.
    const double h = detail::scale_bits(0.5 * sum.hi, p.bits);
    const double h_lo = sum.lo * detail::power_of_two((p.k > 100.0 ? 100.0 : p.k) - 1.0);
    const bool far = a > 20.0;
    const auto den = detail::fast_two_sum(1.0, 2.0 * (far ? 1.0 : h));
    const double near = far ? 1.0 : h, inverse = 1.0 / den.hi, second = near * inverse;
    const double left = detail::fma(-second, den.hi, near) - second * den.lo;
    const double rest = h_lo * (1.0 + inverse * inverse) + left * inverse;
    const auto y = detail::fast_two_sum(h, far ? 0.5 : second);
    return copysign(far ? h + (0.5 + h_lo) : y.hi + (y.lo + rest), x);
  }
}

// Bounds: float 0.51, double 0.65.
template <class T>
FACULA_SCALAR T cosh(T x) {
  constexpr T limit = std::is_same_v<T, float> ? T(90) : T(711);
  const T a = abs(x);
  const double bounded = a > limit ? limit : a;
  if constexpr (std::is_same_v<T, float>) {
    const double half = 0.5 * detail::exp_short(bounded);
    return static_cast<float>(half + 0.25 / half);
  } else {
    const auto p = detail::exp_argument(bounded);
    const auto sum = detail::exp_sum(1.0, p.r, p.lost);
    const double half = detail::scale_bits(0.5 * sum.hi, p.bits), inverse = 0.25 / half;
    const bool far = a > 40.0;
    const double lo = sum.lo * detail::power_of_two((far ? 0.0 : p.k) - 1.0);
    const double left = detail::fma(-inverse, far ? 1.0 : half, 0.25);
    const auto y = detail::fast_two_sum(half, inverse);
    const double rest = lo * (1.0 - 4.0 * inverse * inverse) + 4.0 * left * inverse;
    return far ? half : y.hi + (y.lo + rest);
  }
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
