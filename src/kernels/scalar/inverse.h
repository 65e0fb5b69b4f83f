// Inverse circular and hyperbolic functions. Bounds are in units in the last place: asin, acos
// 0.65; atan 0.52; atan2 0.6, of floats 0.51 (computed in double).
#pragma once
#include "kernels/scalar/log.h"
#include "kernels/scalar/table.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// (asin(s) - s) / s^3 with z = s^2 <= 1/4.
template <class T>
FACULA_SCALAR T asin_tail(T z) {
  if constexpr (of_floats<T>) {
    return poly(z, 0.1666665983438594, 0.07500513328026354, 0.04451522431070124,
                0.03182201313334281, 0.01438504010341491, 0.03759107900390932);
  } else {
    return poly(z, 0.16666666666666763, 0.07499999999969933, 0.044642857175452064,
                0.03038194266692918, 0.022372216151371003, 0.017351590918448304,
                0.013981075416948539, 0.011396812349992439, 0.010792097941049536,
                0.003661394616290647, 0.021817616124484282, -0.021155872272767398,
                0.03272725164026164);
  }
}

// 1 / sqrt(z) within 4 %, from the bits.
template <class T>
FACULA_SCALAR T rough_rsqrt(T z) {
  using B = Bits<lane_t<T>>;
  constexpr B magic = of_floats<T> ? B(0x5f3759df) : B(0x5fe6eb50c7b537a9);
  return from_bits<T>(Bits<T>(magic) - (to_bits(z) >> 1));
}

// asin(a) for a <= 1/2, else asin(sqrt((1 - a) / 2)) = pi / 4 - asin(a) / 2, as a sum; NaN for a
// > 1.
template <class T>
FACULA_SCALAR Pair<T> asin_halved(T a) {
  const auto small = a <= T(0.5);
  const T half = multiply_add(a, lane_t<T>(-0.5), lane_t<T>(0.5));
  const T z = pick(small, a * a, half), root = sqrt(half), s = pick(small, a, root);
  // The root's remainder is so small that a rough quotient does.
  const T rest = fma(-root, root, half) * (rough_rsqrt(half) * T(0.5));
  return {s, multiply_add(s * z, asin_tail(z), pick(small, T(0), rest))};
}

template <class T>
struct HalfTurns {  // pi and pi / 2 as sums
  using L = lane_t<T>;
  static constexpr L quarter = of_floats<T> ? L(0x1.921fb6p+0) : L(0x1.921fb54442d18p+0);
  static constexpr L quarter_rest = of_floats<T> ? L(-0x1.777a5cp-25) : L(0x1.1a62633145c07p-54);
  static constexpr L half = 2 * quarter, half_rest = 2 * quarter_rest;
};

// (atan(t) - t) / t^3 with z = t^2, |t| <= tan(pi/8), is a constant and z times this: as good as a
// result of type L needs.
template <class L>
inline constexpr double atan_third =
    std::is_same_v<L, float> ? -0.33333332505640934 : -0.33333333333333326;
template <class L, class T>
FACULA_SCALAR T atan_far_tail(T z) {
  if constexpr (std::is_same_v<L, float>) {
    return poly(z, 0.19999904333536053, -0.1428201617721723, 0.11044755238804886,
                -0.08476422070042133, 0.04743985082571016);
  } else {
    return poly(z, 0.19999999999997647, -0.14285714285385176, 0.11111111087999795,
                -0.09090908138062426, 0.07692282611618319, -0.06666224575007779,
                0.058770003277602165, -0.05218265563891243, 0.04502982476428718,
                -0.03346120086001477, 0.015181632388473284);
  }
}
template <class L>
FACULA_SCALAR double atan_tail(double z) {
  return multiply_add(z, atan_far_tail<L>(z), atan_third<L>);
}

// Angles whose tangents lie within the halves of an octave from 1/16 to 16: the first serves all
// below, and the last all above.
template <class L>
struct AngleTable;
template <>
struct AngleTable<float> {
  alignas(64) static constexpr float tangent[] = {
      2.40625f, 3.4375f,  4.8125f, 6.875f,  9.625f,     24.0f,      0.0f,     0.109375f,
      0.15625f, 0.21875f, 0.3125f, 0.4375f, 0.6171875f, 0.8671875f, 1.21875f, 1.71875f};
  alignas(64) static constexpr float angle[] = {
      0x1.2d4b22p+0f, 0x1.49a6bep+0f, 0x1.5dace8p+0f, 0x1.6d2596p+0f,
      0x1.779f1ep+0f, 0x1.87769ep+0f, 0.0f,           0x1.be39ecp-4f,
      0x1.3d6eeep-3f, 0x1.b90d76p-3f, 0x1.362774p-2f, 0x1.a64eecp-2f,
      0x1.1b1dc8p-1f, 0x1.6dc446p-1f, 0x1.c470acp-1f, 0x1.0b39f4p+0f};
  alignas(64) static constexpr float rest[] = {0x1.04746cp-25f,
                                               0x1.061d2ap-27f,
                                               0x1.537fc8p-26f,
                                               -0x1.2c29bp-26f,
                                               -0x1.1e2e8p-25f,
                                               0x1.71d2aep-25f,
                                               0.0f,
                                               -0x1.90f83cp-32f,
                                               0x1.18cc4ep-28f,
                                               -0x1.adb3ecp-28f,
                                               -0x1.1f0286p-27f,
                                               0x1.e611fep-29f,
                                               0x1.e410a2p-27f,
                                               -0x1.5d558ap-26f,
                                               -0x1.a585fep-30f,
                                               0x1.d94476p-25f};
};
template <>
struct AngleTable<double> {
  alignas(64) static constexpr double tangent[] = {
      2.40625, 3.4375,  4.8125, 6.875,  9.625,     24.0,      0.0,     0.109375,
      0.15625, 0.21875, 0.3125, 0.4375, 0.6171875, 0.8671875, 1.21875, 1.71875};
  alignas(64) static constexpr double angle[] = {0x1.2d4b22823a35cp+0,
                                                 0x1.49a6be20c3a52p+0,
                                                 0x1.5dace854dff1cp+0,
                                                 0x1.6d2595b4f5943p+0,
                                                 0x1.779f1d70e8bfdp+0,
                                                 0x1.87769eb8e956bp+0,
                                                 0.0,
                                                 0x1.be39ebe6f07c3p-4,
                                                 0x1.3d6eee8c6626cp-3,
                                                 0x1.b90d7529260a2p-3,
                                                 0x1.362773707ebccp-2,
                                                 0x1.a64eec3cc23fdp-2,
                                                 0x1.1b1dc87904285p-1,
                                                 0x1.6dc44551553afp-1,
                                                 0x1.c470abf2d3d01p-1,
                                                 0x1.0b39f4eca23aep+0};
  alignas(64) static constexpr double rest[] = {0x1.cf7b124d9fd08p-56,
                                                0x1.61f86cbdae1abp-54,
                                                0x1.73f5a5a50fadfp-59,
                                                0x1.6d3e45139467ep-54,
                                                -0x1.282f0950761e8p-55,
                                                0x1.6f77fb9baeba6p-57,
                                                0.0,
                                                0x1.f7b8f29a05987p-58,
                                                0x1.61a3b0ce9281bp-57,
                                                0x1.17b10d2e0e5abp-61,
                                                -0x1.963a544b672d8p-57,
                                                -0x1.24dec1b50b7ffp-56,
                                                -0x1.21e8c8aef8f29p-57,
                                                -0x1.bf8863573828ep-58,
                                                0x1.6a61dbf199479p-56,
                                                0x1.25934545c016cp-54};
};

// 1 / a within 12 %, from the bits.
template <class T>
FACULA_SCALAR T rough_inverse(T a) {
  using B = Bits<lane_t<T>>;
  constexpr B magic = of_floats<T> ? B(0x7ef311c7) : B(0x7fde623822fc16e6);
  return from_bits<T>(Bits<T>(magic) - to_bits(a));
}

// atan(a / b) for 0 <= a <= b, 0 < b < infinity.
template <class T>
FACULA_SCALAR Pair<double> atan_ratio(double a, double b) {
  const bool middle = a > b * 0.41421356237309503;
  const auto num = middle ? fast_two_sum(-b, a) : Pair<double>{a, 0.0};
  const auto den = middle ? fast_two_sum(b, a) : Pair<double>{b, 0.0};
  const double t = num.hi / den.hi, z = t * t, tail = t * z * atan_tail<T>(z);
  const double base = middle ? 0x1.921fb54442d18p-1 : 0.0;
  const double base_lo = middle ? 0x1.1a62633145c07p-55 : 0.0;
  if constexpr (std::is_same_v<T, float>) return {base + (t + tail), 0.0};
  const auto back = two_prod(t, den.hi);
  const double t_lo = (((num.hi - back.hi) - back.lo) + (num.lo - t * den.lo)) / den.hi;
  const auto sum = fast_two_sum(base, t);
  return fast_two_sum(sum.hi, sum.lo + (base_lo + t_lo * (1.0 - z) + tail));
}

// The angle of (x, y), magnitudes scaled away from overflow and underflow.
template <class T>
FACULA_SCALAR double angle(double y, double x) {
  const double ax = abs(x), ay = abs(y);
  const bool steep = ay > ax, both_inf = ax == infinity<double> && ay == infinity<double>;
  double high = steep ? ay : ax, low = steep ? ax : ay;
  // Scaled up wherever there is room: the quotient's rest must not be subnormal.
  const double factor = high > 0x1p900 ? 0x1p-100 : 0x1p100;
  high = both_inf || high == 0.0 ? 1.0 : high * factor;
  low = both_inf ? 1.0 : low * factor;
  const bool endless = high == infinity<double>;
  const auto r = atan_ratio<T>(endless ? 0.0 : low, endless ? 1.0 : high);
  // pi/2 - r above the diagonal, then pi - that on the left: each pair's low part kept.
  const double base = steep ? 0x1.921fb54442d18p+0 : 0.0;
  const double base_lo = steep ? 0x1.1a62633145c07p-54 : 0.0;
  const auto a = fast_two_sum(base, steep ? -r.hi : r.hi);
  const double a_lo = a.lo + (base_lo + (steep ? -r.lo : r.lo));
  const auto b = fast_two_sum(0x1.921fb54442d18p+1, -a.hi);
  const double left = b.hi + (b.lo + (0x1.1a62633145c07p-53 - a_lo));
  return signbit(x) ? left : a.hi + a_lo;
}

// The same for floats, whose doubles need neither scaling nor low parts.
FACULA_SCALAR double angle_short(double y, double x) {
  const double ax = abs(x), ay = abs(y);
  const bool steep = ay > ax, both_inf = ax == infinity<double> && ay == infinity<double>;
  const double far = steep ? ay : ax, near = steep ? ax : ay;
  const double high = both_inf || far == 0.0 ? 1.0 : far, low = both_inf ? 1.0 : near;
  // Around pi/4; an infinite denominator stays on the other side.
  const bool middle = low > high * 0.41421356237309503;
  const double t = (middle ? low - high : low) / (middle ? low + high : high), z = t * t;
  const double r = (middle ? 0x1.921fb54442d18p-1 : 0.0) + (t + t * z * atan_tail<float>(z));
  const double a = steep ? 0x1.921fb54442d18p+0 - r : r;
  return signbit(x) ? 0x1.921fb54442d18p+1 - a : a;
}

}  // namespace detail

template <class T>
FACULA_SCALAR T asin(T x) {
  using Turn = detail::HalfTurns<T>;
  const T a = abs(x);
  const auto r = detail::asin_halved(a);
  const auto sum = detail::fast_two_sum<T>(Turn::quarter, T(-2) * r.hi);
  const T large = sum.hi + (sum.lo + detail::multiply_add(T(-2), r.lo, Turn::quarter_rest));
  return copysign(pick(a <= T(0.5), r.hi + r.lo, large), x);
}

template <class T>
FACULA_SCALAR T acos(T x) {
  using Turn = detail::HalfTurns<T>;
  const T a = abs(x);
  const auto r = detail::asin_halved(a);
  // pi / 2 - x - ... for small ones, else 2 r, or pi - 2 r on the left.
  const auto small = a <= T(0.5), left = x < T(0);
  const T base = pick(small, T(Turn::quarter), pick(left, T(Turn::half), T(0)));
  const T base_lo = pick(small, T(Turn::quarter_rest), pick(left, T(Turn::half_rest), T(0)));
  const T factor = pick(small, T(1), T(2)), turned = pick(small, x, pick(left, a, -a));
  const T sign = copysign(factor, turned);
  const auto sum = detail::fast_two_sum<T>(base, -(sign * r.hi));
  return sum.hi + (sum.lo + detail::multiply_add(-sign, r.lo, base_lo));
}

// The angle of the point (x, y) with the positive x axis, in [-pi, pi].
template <class T>
FACULA_SCALAR T atan2(T y, T x) {
  T r;
  if constexpr (std::is_same_v<T, float>)
    r = static_cast<T>(detail::angle_short(y, x));
  else
    r = detail::angle<T>(y, x);
  r = copysign(r, y);
  return is_nan(x) || is_nan(y) ? detail::quiet_nan<T> : r;
}

template <class T>
FACULA_SCALAR T atan(T x) {
  using namespace detail;
  using L = lane_t<T>;
  using Table = AngleTable<L>;
  constexpr auto first = static_cast<Bits<L>>(2 * (Ieee<L>::bias - 4));
  const auto halves = to_bits(abs(x)) >> (Ieee<L>::mantissa_bits - 1);  // of octaves
  const auto index = index_between(halves, first, first + 15);
  const T a = at_most(abs(x), L(0x1p60));
  // atan(c) + atan(u), u = (a - c) / (1 + a c).
  const T c = entry_of(Table::tangent, index), num = a - c, den = multiply_add(a, c, L(1));
  const T u = num / den, z = u * u;
  // What roundings of quotient and denominator left; so small that a rough inverse does.
  const T den_lo = fma(a, c, T(1) - den);
  const T left = multiply_add(-u, den_lo, fma(-u, den, num)) * rough_inverse(den);
  T tail;
  if constexpr (of_floats<T>)
    tail = poly(z, -0.33333334f, 0.19999396f, -0.14122372f);
  else
    tail =
        poly(z, -0.3333333333333333, 0.19999999999999937, -0.14285714285610943, 0.11111111048356326,
             -0.0909089093176874, 0.07689606758452018, -0.06466824966237472);
  const T base = entry_of(Table::angle, index), sum = base + u, lost = u - (sum - base);
  const T small = multiply_add(u * z, tail, left) + entry_of(Table::rest, index);
  return copysign(sum + (lost + small), x);
}

// Bounds: float 0.51, double 0.9.
template <class T>
FACULA_SCALAR T asinh(T x) {
  const double a = abs(static_cast<double>(x));
  T y;
  if constexpr (std::is_same_v<T, float>) {
    const double square = a * a;
    y = static_cast<float>(detail::log1p_short(a + square / (1.0 + sqrt(1.0 + square))));
  } else {
    const double capped = a > 0x1p500 ? 0x1p500 : a, square = capped * capped;
    const auto sum = detail::two_sum(capped, square / (1.0 + sqrt(1.0 + square)));
    const double near = detail::log1p_core(sum.hi, sum.lo);
    const double far = detail::log_core(a < 0x1p500 ? 0x1p500 : a, 0.6931471805599453);
    y = a < 0x1p500 ? near : far;
  }
  return x == T(0) || !is_finite(x) ? x : copysign(y, x);
}

// Bounds: float 0.51, double 0.6.
template <class T>
FACULA_SCALAR T acosh(T x) {
  const double v = x;
  T y;
  if constexpr (std::is_same_v<T, float>) {
    const double t = v - 1.0;
    y = static_cast<float>(detail::log1p_short(t + sqrt(t * (t + 2.0))));
  } else {
    // The root with what its rounding left.
    const double t = (v > 0x1p500 ? 0x1p500 : v) - 1.0;
    const auto next = detail::two_sum(t, 2.0), square = detail::two_prod(t, next.hi);
    const double root = sqrt(square.hi);
    const double left = detail::fma(-root, root, square.hi) + square.lo;
    const auto sum = detail::two_sum(t, root);
    const double lo = root > 0.0 ? (left + t * next.lo) / (2.0 * root) : 0.0;
    const double near = detail::log1p_core(sum.hi, sum.lo + lo);
    const double far = detail::log_core(v < 0x1p500 ? 0x1p500 : v, 0.6931471805599453);
    y = v < 0x1p500 ? near : far;
  }
  return x < T(1) || is_nan(x) ? detail::quiet_nan<T> : (is_inf(x) ? x : y);
}

// Bounds: float 0.51, double 0.55.
template <class T>
FACULA_SCALAR T atanh(T x) {
  const double a = abs(static_cast<double>(x)), capped = a < 1.0 ? a : 0.5;
  const auto den = detail::fast_two_sum(1.0, -capped);
  T y;
  if constexpr (std::is_same_v<T, float>) {
    y = static_cast<float>(0.5 * detail::log1p_short(2.0 * capped / den.hi));
  } else {
    const double inverse = 1.0 / den.hi, q = 2.0 * capped * inverse;
    const double rest = detail::fma(-q, den.hi, 2.0 * capped) - q * den.lo;
    y = 0.5 * detail::log1p_core(q, rest * inverse);
  }
  const T edge = a == 1.0 ? detail::infinity<T> : detail::quiet_nan<T>;
  return x == T(0) ? x : copysign(a < 1.0 ? y : edge, x);
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
