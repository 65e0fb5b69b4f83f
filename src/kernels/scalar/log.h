// Logarithms and what is built on them: log, log2, log10, log1p, softplus, logaddexp.
// Bounds are in units in the last place of the result.
#pragma once
#include "kernels/scalar/exp.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// x = 2^k m, m = 1 + f, for positive finite x.
template <class T>
struct LogParts {
  T k, f, m;
};

// 1 + f in [lowest, 2 lowest).
template <class T>
FACULA_SCALAR LogParts<T> log_parts_from(T lowest, T x) {
  using I = Ieee<T>;
  constexpr Bits<T> one = std::bit_cast<Bits<T>>(T(1));
  const Bits<T> root = to_bits(lowest);
  constexpr Bits<T> mantissa = (Bits<T>{1} << I::mantissa_bits) - 1;
  const bool tiny = x < std::numeric_limits<T>::min();
  const Bits<T> b = to_bits(tiny ? x * I::tiny_scale : x) + (one - root);
  // The exponent as a number: it stands in the low bits of a value whose own exponent is known.
  const T biased =
      from_bits<T>((b >> I::mantissa_bits) | to_bits(T(Bits<T>{1} << I::mantissa_bits)));
  const T k = biased - (T(Bits<T>{1} << I::mantissa_bits) + I::bias);
  const T m = from_bits<T>((b & mantissa) + root);
  return {tiny ? k - I::tiny_exponent : k, m - T(1), m};
}

// 1 + f in [sqrt(1/2), sqrt(2)): the smallest quotient f / (2 + f).
template <class T>
FACULA_SCALAR LogParts<T> log_parts(T x) {
  return log_parts_from(T(0.70710678118654752), x);
}
// 1 + f in [3/4, 3/2), for which AVX-512 has an instruction.
template <class T>
FACULA_SCALAR LogParts<T> log_parts_of_powers(T x) {
  return log_parts_from(T(0.75), x);
}

#if defined(FACULA_PACKS)
template <class T, int U>
FACULA_SCALAR Pack<T, U> exponent(Pack<T, U> x) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_getexp_ps(x.v[i]);
    else
      return _mm512_getexp_pd(x.v[i]);
  });
}
template <_MM_MANTISSA_NORM_ENUM range, class T, int U>
FACULA_SCALAR Pack<T, U> significand(Pack<T, U> x) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_getmant_ps(x.v[i], range, _MM_MANT_SIGN_src);
    else
      return _mm512_getmant_pd(x.v[i], range, _MM_MANT_SIGN_src);
  });
}
template <class T, int U>
FACULA_SCALAR LogParts<Pack<T, U>> log_parts(Pack<T, U> x) {
  using P = Pack<T, U>;
  const P k = exponent(x), twice = significand<_MM_MANT_NORM_1_2>(x);
  const auto above = twice >= P(T(1.4142135623730951));
  const P m = pick(above, twice * T(0.5), twice);
  return {pick(above, k + T(1), k), m - T(1), m};
}
template <class T, int U>
FACULA_SCALAR LogParts<Pack<T, U>> log_parts_of_powers(Pack<T, U> x) {
  const auto m = significand<_MM_MANT_NORM_p75_1p5>(x);
  return {exponent(x) - exponent(m), m - T(1), m};
}
#endif

// (2 atanh(s / 2) - s) / s^3 with z = s^2.
template <class T>
FACULA_SCALAR T atanh_tail(T z) {
  if constexpr (of_floats<T>) {
    return poly(z, 0.6666666564134591f / 8, 0.4000033620802153f / 32, 0.2853723899311438f / 128,
                0.23583557034865546f / 512);
  } else {
    return poly(z, 0.6666666666666666 / 8, 0.40000000000006286 / 32, 0.28571428569072765 / 128,
                0.2222222264877897 / 512, 0.1818177550644258 / 2048, 0.15387097733262706 / 8192,
                0.13249960346957373 / 32768, 0.13252768657154224 / 131072);
  }
}

// The logarithm's value at arguments where the formula does not hold.
template <class T>
FACULA_SCALAR T log_special(T x, T y) {
  const T positive = x < infinity<T> ? y : x;
  // As the processor's own, NaN has the sign.
  return x > T(0) ? positive : (x == T(0) ? -infinity<T> : -quiet_nan<T>);
}
#if defined(FACULA_PACKS)
template <class T, int U>
FACULA_SCALAR Pack<T, U> log_special(Pack<T, U> x, Pack<T, U> y) {
  // What stands for a NaN, a signalling one, 0, 1, -infinity, infinity, a number below and above
  // zero, from the lowest digit on: 0 is y, 3 NaN, 4 -infinity, 5 infinity.
  constexpr int by_class = 0x03530433;
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_fixupimm_ps(y.v[i], x.v[i], _mm512_set1_epi32(by_class), 0);
    else
      return _mm512_fixupimm_pd(y.v[i], x.v[i], _mm512_set1_epi64(by_class), 0);
  });
}
#endif

// log(1 + f) = s + left / den + s^3 tail for 1 + f in [sqrt(1/2), sqrt(2)): 2 atanh(s / 2), where s
// is f over den = 1 + f / 2, and left is what the rounded s leaves of f.
template <class T>
struct LogNearOne {
  T s, left, inverse, cube, tail;
};
template <class T>
FACULA_SCALAR LogNearOne<T> log_near_one(T f) {
  const T den = fma(f, 0.5, 1.0), den_lo = fma(f, 0.5, T(1) - den);
  const T inverse = T(1) / den, s = f * inverse, z = s * s;
  const T left = multiply_add(-s, den_lo, fma(-s, den, f));
  return {s, left, inverse, s * z, atanh_tail(z)};
}
// log(x) + correction as a sum, for positive finite x.
template <class T>
FACULA_SCALAR Pair<T> log_sum(T x, std::type_identity_t<T> correction) {
  using L = lane_t<T>;
  constexpr L ln2_hi = of_floats<T> ? L(0x1.62e3p-1) : L(0x1.62e42fee00000p-1);
  constexpr L ln2_lo = of_floats<T> ? L(0x1.2fefa39ef3579p-17) : L(0x1.a39ef35793c76p-33);
  const auto [k, f, m] = log_parts(x);
  const auto l = log_near_one(f);
  const auto sum = fast_two_sum<T>(k * ln2_hi, l.s);
  const T rest = multiply_add(l.left, l.inverse, multiply_add(k, ln2_lo, correction));
  return {sum.hi, sum.lo + multiply_add(l.cube, l.tail, rest)};
}
template <class T>
FACULA_SCALAR T log_core(T x, std::type_identity_t<T> correction) {
  const auto sum = log_sum(x, correction);
  return sum.hi + sum.lo;
}

// log(x) of floats by powers of f, which take less than a quotient and what it leaves.
template <class T>
  requires(of_floats<T>)
FACULA_SCALAR T log_by_powers(T x) {
  const auto [k, f, m] = log_parts_of_powers(x);
  const T square = f * f, first = multiply_add(k, 0x1.62e3p-1f, f);  // whose product is exact
  const T second = multiply_add(square, -0.5f, first);
  const T lost =
      (f - multiply_add(k, -0x1.62e3p-1f, first)) + multiply_add(square, -0.5f, first - second);
  const T cubic = poly(f, 0.3333334f, -0.25000164f, 0.19999574f, -0.16655311f, 0.1427695f,
                       -0.12728749f, 0.11695953f, -0.09102431f, 0.03757134f);
  const T rest = multiply_add(square * f, cubic, multiply_add(k, 0x1.2fefa39ef3579p-17f, lost));
  return second + rest;
}

// log(x) to the base of a table: k log(2) - log(c) + log(1 + z) for x = 2^k m and z = m c - 1.
template <template <class> class TableOf, class T>
FACULA_SCALAR T log_by_table(T x) {
  using L = lane_t<T>;
  using Table = TableOf<L>;
  const auto [k, f, m] = log_parts_of_powers(x);
  const auto j = to_bits(m) >> (Ieee<T>::mantissa_bits - 4);
  const T z = fma(m, entry_of(InverseTable<L>::at, j), L(-1));
  const T base = multiply_add(k, Table::step, entry_of(Table::high, j));
  T curve;  // (log(1 + z) - z + z^2 / 2) / z^3
  if constexpr (of_floats<T>)
    curve = poly(z, 0.33333328f, -0.25001913f, 0.20019692f, -0.15680882f);
  else
    curve = poly(z, 0.33333333333333093, -0.25000000000053685, 0.2000000000156559,
                 -0.16666666542547842, 0.14285710728606807, -0.1250009466108069,
                 0.11114385826807457, -0.09988991356695187, 0.08063540970781809);
  T low = entry_of(Table::rest, j);
  if constexpr (Table::step_rest != 0) low = multiply_add(k, Table::step_rest, low);
  T product = z;
  if constexpr (Table::factor != 1) {
    product = z * T(Table::factor);
    low = low + multiply_add(z, Table::factor_rest, fma(z, Table::factor, -product));
  }
  const auto sum = fast_two_sum(base, product);
  // The square is not rounded by itself: near 1 it counts.
  low = multiply_add(z * T(L(-0.5) * Table::factor), z, low);
  return sum.hi + (sum.lo + multiply_add(z * z * product, curve, low));
}

// log(x) in double, good to 2^-37 of the result's size: enough for a float result.
template <class T>
  requires(!of_floats<T>)
FACULA_SCALAR T log_short(T x) {
  const auto [k, f, m] = log_parts(x);
  const T s = quotient(f, f + T(2.0)), z = s * s;
  const T tail =
      poly(z, 0.6666666564134591, 0.4000033620802153, 0.2853723899311438, 0.23583557034865546);
  return multiply_add(k, 0x1.62e42fefa39efp-1, multiply_add(s * z, tail, s + s));
}

// log(1 + x + lo) for x > -1. Near zero, where 1 + x keeps too little of x, by its series.
template <class T>
FACULA_SCALAR Pair<T> log1p_sum(T x, std::type_identity_t<T> lo = 0) {
  using L = lane_t<T>;
  constexpr L near = of_floats<T> ? L(0x1p-10) : L(0x1p-20);
  const auto u = two_sum(T(1), x), sum = log_sum(u.hi, (u.lo + lo) / u.hi);
  const T small = x * x * multiply_add(x, L(1) / L(3), L(-0.5)) + lo;
  const auto is_near = abs(x) < T(near);
  return {pick(is_near, x, sum.hi), pick(is_near, small, sum.lo)};
}
template <class T>
FACULA_SCALAR T log1p_core(T x, std::type_identity_t<T> lo = 0) {
  const auto sum = log1p_sum(x, lo);
  return sum.hi + sum.lo;
}

// The same in double for a float result.
FACULA_SCALAR double log1p_short(double x) {
  const double u = 1.0 + x;
  return log_short(u) + (x - (u - 1.0));
}

// log(1 + e^x) for x <= 0, for a float result and as a sum: 2 atanh(s), s = e^x / (2 + e^x).
FACULA_SCALAR double softplus_short(double x) {
  const double e = exp_short(x < -200.0 ? -200.0 : x), s = e / (2.0 + e);
  return s * poly(s * s, 1.999999999809006, 0.6666667902643397, 0.3999871124686233,
                  0.2862020740843824, 0.2139856050667854, 0.24393908084023025);
}
FACULA_SCALAR Pair<double> softplus_sum(const ExpArgument<double>& p) {
  const auto e = exp_sum(1.0, p.r, p.lost);
  return log1p_sum(scale_bits(e.hi, p.bits), scale_bits(e.lo, p.bits));
}

}  // namespace detail

// log(x) without a look-up: for loops that run on no packs, where look-ups are gathers. Bounds:
// float 0.73, double 0.57.
template <class T>
FACULA_SCALAR T log_by_parts(T x) {
  if constexpr (of_floats<T>)
    return detail::log_special(x, detail::log_by_powers(x));
  else
    return detail::log_special(x, detail::log_core(x, T(0)));
}

// Bounds: float 0.6, without look-ups 0.73; double 0.57.
template <class T>
FACULA_SCALAR T log(T x) {
#if defined(__AVX512F__)
  return detail::log_special(x, detail::log_by_table<detail::NaturalLogTable>(x));
#else
  return log_by_parts(x);
#endif
}

// Bounds: float 0.6, double 0.57.
template <class T>
FACULA_SCALAR T log2(T x) {
  return detail::log_special(x, detail::log_by_table<detail::BinaryLogTable>(x));
}

// Bounds: float 0.6, double 0.57.
template <class T>
FACULA_SCALAR T log10(T x) {
  return detail::log_special(x, detail::log_by_table<detail::DecimalLogTable>(x));
}

// log(1 + x), accurate near zero. Bounds: float 0.6, double 0.55.
template <class T>
FACULA_SCALAR T log1p(T x) {
  const T y = detail::log_special(T(1) + x, detail::log1p_core(x));
  return pick(x == T(0), x, y);
}

// log(1 + e^(x beta)) / beta without overflow. Bounds for beta 1: float 0.51, double 0.55.
template <class T>
FACULA_SCALAR T softplus(T x, T beta = T(1)) {
  const double z = static_cast<double>(x) * beta;
  if constexpr (std::is_same_v<T, float>) {
    const double inverse = 1.0 / beta, high = z > 0.0 ? z : 0.0;
    return static_cast<float>((high + detail::softplus_short(-abs(z))) * inverse);
  } else {
    const auto l = detail::softplus_sum(detail::exp_argument(detail::clamp_exponent(-abs(z))));
    const auto sum = detail::two_sum(z > 0.0 ? z : 0.0, l.hi);
    return (z > 40.0 ? z : sum.hi + (sum.lo + l.lo)) / beta;
  }
}

// log(sigmoid(x)). Bounds: float 0.51, double 0.55.
template <class T>
FACULA_SCALAR T log_sigmoid(T x) {
  const double v = x, low = v < 0.0 ? v : 0.0;
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(low - detail::softplus_short(-abs(v))) + 0.0f;  // no negative zero
  } else {
    const auto l = detail::softplus_sum(detail::exp_argument(detail::clamp_exponent(-abs(v))));
    const auto sum = detail::two_sum(low, -l.hi);
    return v < -40.0 ? v : sum.hi + (sum.lo - l.lo);
  }
}

// log(e^a + e^b). Bounds, but where the result is close to zero: float 0.6, double 0.55.
template <class T>
FACULA_SCALAR T logaddexp(T a, T b) {
  const T high = a > b ? a : b;
  T y;
  if constexpr (std::is_same_v<T, float>) {
    y = static_cast<float>(high + detail::softplus_short(-abs(static_cast<double>(a) - b)));
  } else {
    const auto gap = detail::two_sum(a > b ? b : a, -high);
    const bool far = !(gap.hi > -800.0);
    const auto p = detail::exp_argument(far ? -745.0 : gap.hi, far ? 0.0 : gap.lo);
    const auto l = detail::softplus_sum(p), sum = detail::two_sum(high, l.hi);
    y = far ? high : sum.hi + (sum.lo + l.lo);
  }
  return a == b && is_inf(a) ? a : (is_nan(a) || is_nan(b) ? a + b : y);
}

// log2(2^a + 2^b), bounded likewise.
template <class T>
FACULA_SCALAR T logaddexp2(T a, T b) {
  const T high = a > b ? a : b;
  T y;
  if constexpr (std::is_same_v<T, float>) {
    const double gap = -abs(static_cast<double>(a) - b) * 0.6931471805599453;
    y = static_cast<float>(high + detail::softplus_short(gap) * 1.4426950408889634);
  } else {
    const auto gap = detail::two_sum(a > b ? b : a, -high);
    const bool far = !(gap.hi > -1100.0);
    const auto p = detail::exp2_argument(far ? -1075.0 : gap.hi, far ? 0.0 : gap.lo);
    const auto l = detail::softplus_sum(p), product = detail::two_prod(l.hi, 0x1.71547652b82fep+0);
    const auto sum = detail::two_sum(high, product.hi);
    const double lo = l.lo * 0x1.71547652b82fep+0 + l.hi * 0x1.777d0ffda0d24p-56;
    y = far ? high : sum.hi + (sum.lo + (product.lo + lo));
  }
  return a == b && is_inf(a) ? a : (is_nan(a) || is_nan(b) ? a + b : y);
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
