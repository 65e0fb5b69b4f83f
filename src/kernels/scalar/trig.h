// sin, cos, tan, sinc. Bounds (units in the last place): sin, cos 0.55; tan 0.6.
//
// sin and cos hold everywhere but branch to a slow reduction beyond trig_limit. A loop that is to
// vectorise checks a block with trig_in_fast_range and calls sin_fast and so on: the same bits.
#pragma once
#include "kernels/scalar/table.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

constexpr double trig_limit = 1.0e6;
// Where a float's product still finds the multiple of pi/16 that is near enough.
constexpr double float_trig_limit = 5.0e5;

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

// Sines of multiples of pi/16, with what rounding left.
template <class L>
struct QuarterTurn;
template <>
struct QuarterTurn<float> {
  static constexpr float sine[] = {0.0f,           0x1.8f8b84p-3f, 0x1.87de2ap-2f,
                                   0x1.1c73b4p-1f, 0x1.6a09e6p-1f, 0x1.a9b662p-1f,
                                   0x1.d906bcp-1f, 0x1.f6297cp-1f, 0x1p+0f};
  static constexpr float rest[] = {0.0f,
                                   -0x1.cb2cfap-30f,
                                   0x1.abaa58p-28f,
                                   -0x1.9465cep-27f,
                                   0x1.9fcef4p-27f,
                                   0x1.21d434p-26f,
                                   0x1.e651a8p-26f,
                                   0x1.feeb96p-26f,
                                   0.0f};
};
template <>
struct QuarterTurn<double> {
  static constexpr double sine[] = {0.0,
                                    0x1.8f8b83c69a60bp-3,
                                    0x1.87de2a6aea963p-2,
                                    0x1.1c73b39ae68c8p-1,
                                    0x1.6a09e667f3bcdp-1,
                                    0x1.a9b66290ea1a3p-1,
                                    0x1.d906bcf328d46p-1,
                                    0x1.f6297cff75cbp-1,
                                    0x1p+0};
  static constexpr double rest[] = {0.0,
                                    -0x1.26d19b9ff8d82p-57,
                                    -0x1.72cedd3d5a61p-57,
                                    0x1.b25dd267f66p-55,
                                    -0x1.bdd3413b26456p-55,
                                    0x1.9f630e8b6dac8p-60,
                                    0x1.457e610231ac2p-56,
                                    0x1.562172a361fd3p-56,
                                    0.0};
};

// Of half a turn.
template <class L>
struct HalfTurn {
  alignas(64) L at[16];
};
template <class L>
constexpr HalfTurn<L> half_turn_of_sines(const L (&quarter)[9]) {
  HalfTurn<L> r{};
  for (int j = 0; j < 16; ++j) r.at[j] = quarter[j <= 8 ? j : 16 - j];
  return r;
}
template <class L>
constexpr HalfTurn<L> half_turn_of_cosines(const L (&quarter)[9]) {
  HalfTurn<L> r{};
  for (int j = 0; j < 16; ++j) r.at[j] = j <= 8 ? quarter[8 - j] : -quarter[j - 8];
  return r;
}
template <class L>
struct TurnTable {
  using Quarter = QuarterTurn<L>;
  static constexpr auto sine = half_turn_of_sines(Quarter::sine);
  static constexpr auto sine_rest = half_turn_of_sines(Quarter::rest);
  static constexpr auto cosine = half_turn_of_cosines(Quarter::sine);
  static constexpr auto cosine_rest = half_turn_of_cosines(Quarter::rest);
};

// x less the nearest multiple of pi/16, and the low bits of that multiple. The second part's
// product is a multiple of far less than the first difference's last place, so that its sum is
// exact.
template <class T>
FACULA_SCALAR Reduced<T> reduce_finely(T x) {
  using L = lane_t<T>;
  constexpr bool is_float = of_floats<T>;
  constexpr L step = is_float ? L(0x1.921fb6p-3) : L(0x1.921fb54442d18p-3);
  constexpr L second = is_float ? L(-0x1.777a5cp-28) : L(0x1.1a62633145c07p-57);
  constexpr L third = is_float ? L(-0x1.ee59dap-53) : L(-0x1.f1976b7ed8fbcp-113);
  constexpr L magic = Ieee<L>::round_magic;
  const T shifted = multiply_add(x, L(5.092958178940651), magic), k = shifted - T(magic);
  const T a = fma(k, -step, x);
  const auto p = two_prod(k, second);
  const T r = a - p.hi, lost = (a - r) - p.hi;
  return {r, lost + multiply_add(k, -third, -p.lo), to_bits(shifted)};
}

// (sin(r) - r) / r^3 and (cos(r) - 1) / r^2 for |r| < 0.13 (0.1), z = r^2.
template <class T>
struct SmallAngle {
  T cube, square;
};
template <class T>
FACULA_SCALAR SmallAngle<T> small_angle(T z) {
  if constexpr (of_floats<T>) {
    return {poly(z, -0.16666666f, 0.008330308f), poly(z, -0.49999996f, 0.041645488f)};
  } else {
    return {poly(z, -0.16666666666666666, 0.008333333333327614, -0.00019841269546522024,
                 2.7552458403308076e-06),
            poly(z, -0.5, 0.041666666666603756, -0.0013888888564672888, 2.4796240481975934e-05)};
  }
}

// s and c with rests, the sine and cosine of an angle of the table, and r + lo beside it:
// sin(r) = r + sine, cos(r) = 1 + cosine.
template <class T>
struct TableAngle {
  T s, c, s_rest, c_rest, r, sine, cosine;
  Bits<T> sixteenths;
};
template <class T>
FACULA_SCALAR TableAngle<T> table_angle(T x, int sixteenths = 0) {
  using Table = TurnTable<lane_t<T>>;
  const auto a = reduce_finely(x);
  const auto k = a.quadrant + Bits<T>(sixteenths);
  const T z = a.r * a.r;
  const auto p = small_angle(z);
  return {entry_of(Table::sine.at, k),
          entry_of(Table::cosine.at, k),
          entry_of(Table::sine_rest.at, k),
          entry_of(Table::cosine_rest.at, k),
          a.r,
          multiply_add(a.r * z, p.cube, a.lo),
          z * p.square,
          k};
}
// The sine of the sum, as a leading sum and what is less than a hundredth of it.
template <class T>
FACULA_SCALAR Pair<T> sin_of(const TableAngle<T>& a) {
  const T sum = multiply_add(a.c, a.r, a.s), left = fma(a.c, a.r, a.s - sum);
  const T small = multiply_add(a.c, a.sine, multiply_add(a.c_rest, a.r, a.s_rest));
  return {sum, left + multiply_add(a.s, a.cosine, small)};
}
template <class T>
FACULA_SCALAR Pair<T> cos_of(const TableAngle<T>& a) {
  return sin_of<T>({a.c, -a.s, a.c_rest, -a.s_rest, a.r, a.sine, a.cosine, a.sixteenths});
}

// sin(x + sixteenths * pi / 16).
template <class T>
FACULA_SCALAR T sin_by_table(T x, int sixteenths = 0) {
  const auto a = table_angle(x, sixteenths);
  const auto y = sin_of(a);
  const auto sign = (a.sixteenths & Bits<T>(16)) << (8 * sizeof(lane_t<T>) - 5);
  return from_bits<T>(to_bits(y.hi + y.lo) ^ sign);
}

// Sines and cosines of multiples of pi/16 times a factor of their own, with which both are floats
// to 2^-38 of their quotient.
struct TangentTable {
  alignas(64) static constexpr float sine[] = {
      0.0f,    0x1.a8b85cp-3f, 0x1.d9be18p-2f, 0x1.59899ap-1f,
      0x1p+0f, 0x1.029114p+0f, 0x1.1dedcep+0f, 0x1.0ae6ccp+0f,
      0x1p+0f, 0x1.0ae6ccp+0f, 0x1.1dedcep+0f, 0x1.029114p+0f,
      0x1p+0f, 0x1.59899ap-1f, 0x1.d9be18p-2f, 0x1.a8b85cp-3f};
  alignas(64) static constexpr float cosine[] = {
      0x1p+0f,  0x1.0ae6ccp+0f,  0x1.1dedcep+0f,  0x1.029114p+0f,
      0x1p+0f,  0x1.59899ap-1f,  0x1.d9be18p-2f,  0x1.a8b85cp-3f,
      0.0f,     -0x1.a8b85cp-3f, -0x1.d9be18p-2f, -0x1.59899ap-1f,
      -0x1p+0f, -0x1.029114p+0f, -0x1.1dedcep+0f, -0x1.0ae6ccp+0f};
};

// tan(x) as num / den, both as leading sums and what is less than a hundredth of them.
template <class T>
struct Tangent {
  Pair<T> num, den;
};
template <class T>
FACULA_SCALAR Tangent<T> tangent_of(T x) {
  if constexpr (of_floats<T>) {
    // tan(c + r) = (sin(c) + cos(c) tan(r)) / (cos(c) - sin(c) tan(r))
    const auto a = reduce_finely(x);
    const T s = entry_of(TangentTable::sine, a.quadrant);
    const T c = entry_of(TangentTable::cosine, a.quadrant);
    const T z = a.r * a.r;
    const T tail = multiply_add(a.r * z, poly(z, 0.333333343f, 0.133331001f, 0.0543796867f),
                                a.lo);  // tan(r) - r
    const T num = multiply_add(c, a.r, s), den = multiply_add(-s, a.r, c);
    return {{num, multiply_add(c, tail, fma(c, a.r, s - num))},
            {den, multiply_add(-s, tail, fma(-s, a.r, c - den))}};
  } else {
    const auto a = table_angle(x);
    return {sin_of(a), cos_of(a)};
  }
}

// The rounding errors of numerator and denominator enter the quotient to first order.
template <class T>
FACULA_SCALAR T tan_by_table(T x) {
  const auto a = tangent_of(x);
  const auto den = fast_two_sum(a.den.hi, a.den.lo);
  const T inverse = T(1) / den.hi, q = a.num.hi * inverse;
  const T rest = fma(-q, den.hi, a.num.hi) + multiply_add(-q, den.lo, a.num.lo);
  return multiply_add(rest, inverse, q);
}

}  // namespace detail

template <class T>
FACULA_SCALAR bool trig_in_fast_range(T x) {
  return abs(x) <= T(std::is_same_v<T, float> ? detail::float_trig_limit : detail::trig_limit);
}

template <class T>
FACULA_SCALAR T sin_fast(T x) {
  return pick(x == T(0), x, detail::sin_by_table(x));
}
template <class T>
FACULA_SCALAR T cos_fast(T x) {
  return detail::sin_by_table(x, 8);
}
template <class T>
FACULA_SCALAR T tan_fast(T x) {
  return pick(x == T(0), x, detail::tan_by_table(x));
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
