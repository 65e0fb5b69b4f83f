// Accuracy and edge cases of the scalar functions, against long double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"
#include "kernels/scalar/special.h"

namespace {

namespace m = facula::scalar::math;
using Wide = long double;

// The distance of `got` from `want` in units of the last place of `want` as a T.
template <class T>
double ulps(T got, Wide want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(static_cast<T>(want))) return got == static_cast<T>(want) ? 0 : 1e9;
  const int exponent = want == 0 ? std::numeric_limits<T>::min_exponent - 1 : std::ilogb(want);
  const int floor = std::numeric_limits<T>::min_exponent - 1;
  const int bits = std::numeric_limits<T>::digits - 1;
  return static_cast<double>(std::fabs(std::scalbn(got - want, bits - std::max(exponent, floor))));
}

struct Case {
  const char* name;
  float (*narrow)(float);
  double (*wide)(double);
  Wide (*reference)(Wide);
  double low, high;  // of the sampled arguments
  double bound_float, bound_double;
};

Wide sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide softplus(Wide x) { return std::log1p(std::exp(x)); }
Wide rsqrt(Wide x) { return 1 / std::sqrt(x); }

#define FUNCTION(name) \
  #name, [](float x) { return m::name(x); }, [](double x) { return m::name(x); }
#define LIBRARY(name) [](Wide x) { return std::name(x); }

const Case cases[] = {
    {FUNCTION(exp), LIBRARY(exp), -87, 88, 0.9, 0.55},
    {FUNCTION(exp), LIBRARY(exp), -104, -87, 0.9, 0.55},
    {FUNCTION(exp2), LIBRARY(exp2), -149, 127.9, 0.85, 0.65},
    {FUNCTION(expm1), LIBRARY(expm1), -2, 2, 0.51, 0.63},
    {FUNCTION(expm1), LIBRARY(expm1), -60, 88, 0.51, 0.63},
    {FUNCTION(sigmoid), sigmoid, -80, 80, 2.0, 2.0},
    {FUNCTION(tanh), LIBRARY(tanh), -25, 25, 0.62, 0.68},
    {FUNCTION(tanh), LIBRARY(tanh), -1, 1, 0.62, 0.68},
    {FUNCTION(sinh), LIBRARY(sinh), -88, 88, 0.51, 0.65},
    {FUNCTION(sinh), LIBRARY(sinh), -1, 1, 0.51, 0.65},
    {FUNCTION(cosh), LIBRARY(cosh), -88, 88, 0.51, 0.65},
    {FUNCTION(log), LIBRARY(log), 0, 10, 0.73, 0.55},
    {FUNCTION(log), LIBRARY(log), 0.5, 2, 0.73, 0.55},
    {FUNCTION(log), LIBRARY(log), 0, 1e-37, 0.73, 0.55},
    {FUNCTION(log2), LIBRARY(log2), 0, 1e6, 0.6, 0.56},
    {FUNCTION(log10), LIBRARY(log10), 0, 1e6, 0.6, 0.55},
    {FUNCTION(log1p), LIBRARY(log1p), -0.999, 4, 0.6, 0.55},
    {FUNCTION(log1p), LIBRARY(log1p), -1e-3, 1e-3, 0.6, 0.55},
    {FUNCTION(softplus), softplus, -80, 80, 0.51, 0.55},
    {FUNCTION(sin), LIBRARY(sin), -100, 100, 0.55, 0.55},
    {FUNCTION(cos), LIBRARY(cos), -100, 100, 0.55, 0.55},
    {FUNCTION(tan), LIBRARY(tan), -100, 100, 0.55, 0.55},
    {FUNCTION(sin), LIBRARY(sin), 1e6, 1e9, 0.51, 0.55},
    {FUNCTION(cos), LIBRARY(cos), 1e6, 1e9, 0.51, 0.55},
    {FUNCTION(tan), LIBRARY(tan), 1e6, 1e9, 0.51, 0.6},
    {FUNCTION(asin), LIBRARY(asin), -1, 1, 0.65, 0.65},
    {FUNCTION(acos), LIBRARY(acos), -1, 1, 0.65, 0.65},
    {FUNCTION(atan), LIBRARY(atan), -5, 5, 0.52, 0.52},
    {FUNCTION(asinh), LIBRARY(asinh), -10, 10, 0.51, 0.9},
    {FUNCTION(acosh), LIBRARY(acosh), 1, 10, 0.51, 0.6},
    {FUNCTION(atanh), LIBRARY(atanh), -1, 1, 0.51, 0.55},
    {FUNCTION(erf), LIBRARY(erf), -6, 6, 0.7, 1.2},
    {FUNCTION(erf), LIBRARY(erf), -1, 1, 0.7, 1.2},
    {FUNCTION(erfc), LIBRARY(erfc), -3, 9, 0.8, 1.3},
    {FUNCTION(rsqrt), rsqrt, 0, 100, 1.5, 1.5},
};
#undef FUNCTION
#undef LIBRARY

template <class T>
void check(const Case& c, T (*function)(T), double bound) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(c.low, c.high);
  double worst = 0;
  T where = 0;
  for (int i = 0; i < 50000; ++i) {
    const T x = static_cast<T>(uniform(random));
    const double error = ulps(function(x), c.reference(x));
    if (error > worst) worst = error, where = x;
  }
  EXPECT_LE(worst, bound) << c.name << " at " << where;
}

TEST(ScalarMath, IsAccurateInFloat) {
  for (const auto& c : cases) check<float>(c, c.narrow, c.bound_float);
}

TEST(ScalarMath, IsAccurateInDouble) {
  for (const auto& c : cases) check<double>(c, c.wide, c.bound_double);
}

TEST(ScalarMath, PowIsAccurate) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> base(0, 30), exponent(-20, 20);
  for (int i = 0; i < 50000; ++i) {
    const double x = base(random), y = exponent(random);
    EXPECT_LE(ulps(m::pow(x, y), std::pow(Wide(x), Wide(y))), 1.0) << x << " " << y;
    const float u = static_cast<float>(x), v = static_cast<float>(y);
    EXPECT_LE(ulps(m::pow(u, v), std::pow(Wide(u), Wide(v))), 0.51) << u << " " << v;
  }
}

template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  std::vector<T> v{0,        1,       2, 3, T(0.5), T(1.5), T(1e10), L::infinity(), L::denorm_min(),
                   L::min(), L::max()};
  const size_t n = v.size();
  for (size_t i = 0; i < n; ++i) v.push_back(-v[i]);
  v.push_back(L::quiet_NaN());
  return v;
}

// Equal in class, sign of zero and, where finite, to the bound.
template <class T>
void expect_same(T got, T want, const char* name, T x, T y) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << name << " " << x << " " << y;
    return;
  }
  EXPECT_LE(ulps(got, Wide(want)), 3.0) << name << " " << x << " " << y;
  if (want != 0) return;
  EXPECT_EQ(std::signbit(got), std::signbit(want)) << name << " " << x << " " << y;
}

template <class T>
void check_edges() {
  for (const T x : edges<T>()) {
    for (const auto& c : cases) {
      if (c.reference == sigmoid || c.reference == softplus) continue;
      T got;
      if constexpr (std::is_same_v<T, float>)
        got = c.narrow(x);
      else
        got = c.wide(x);
      expect_same(got, static_cast<T>(c.reference(x)), c.name, x, T(0));
    }
    for (const T y : edges<T>()) {
      expect_same(m::pow(x, y), std::pow(x, y), "pow", x, y);
      expect_same(m::atan2(x, y), std::atan2(x, y), "atan2", x, y);
      expect_same(m::hypot(x, y), std::hypot(x, y), "hypot", x, y);
      expect_same(m::fmod(x, y), std::fmod(x, y), "fmod", x, y);
      expect_same(m::nextafter(x, y), std::nextafter(x, y), "nextafter", x, y);
    }
  }
}

TEST(ScalarMath, EdgeCasesAreTheLibrarysInFloat) { check_edges<float>(); }
TEST(ScalarMath, EdgeCasesAreTheLibrarysInDouble) { check_edges<double>(); }

TEST(ScalarMath, FmodIsExact) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    const float a = m::detail::from_bits<float>(static_cast<uint32_t>(random()));
    const float b = m::detail::from_bits<float>(static_cast<uint32_t>(random()));
    const float want = std::fmod(a, b), got = m::fmod(a, b);
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << a << " " << b;
  }
}

TEST(ScalarMath, TrigFastAndFullAgree) {
  for (float x = -5e5f; x < 5e5f; x += 18.7f) {
    ASSERT_TRUE(m::trig_in_fast_range(x));
    EXPECT_EQ(m::sin(x), m::sin_fast(x));
    EXPECT_EQ(m::cos(x), m::cos_fast(x));
  }
  EXPECT_FALSE(m::trig_in_fast_range(1e7f));
}

TEST(ScalarMath, IntegersWrapAndNeverTrap) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(m::floor_div<int64_t>(least, -1), least);
  EXPECT_EQ(m::remainder<int64_t>(least, -1), 0);
  EXPECT_EQ(m::floor_div(-7, 2), -4);
  EXPECT_EQ(m::remainder(-7, 2), 1);
  EXPECT_EQ(m::remainder(7, -2), -1);
  EXPECT_EQ(m::floor_div(5, 0), 0);
  EXPECT_EQ(m::int_pow<int8_t>(2, 7), -128);
  EXPECT_EQ(m::int_pow(-1, -3), -1);
  EXPECT_EQ(m::int_pow(2, -1), 0);
  EXPECT_EQ(m::gcd(-12, 18), 6);
  EXPECT_EQ(m::lcm(4, 6), 12);
  EXPECT_EQ(m::lshift<int32_t>(1, 32), 0);
  EXPECT_EQ(m::lshift<int32_t>(1, -1), 0);
  EXPECT_EQ(m::rshift<int32_t>(-8, 40), -1);
  EXPECT_EQ(m::rshift<int32_t>(-8, 1), -4);
}

TEST(ScalarMath, FloorDivisionFollowsPython) {
  EXPECT_EQ(m::floor_div(-7.0, 2.0), -4.0);
  EXPECT_EQ(m::remainder(-7.0, 2.0), 1.0);
  EXPECT_EQ(m::floor_div(1.0, 0.0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::signbit(m::floor_div(-0.0, 3.0)));
}

struct Known {
  const char* name;
  double got, want;
};

// Values from mpmath at 40 digits.
TEST(ScalarMath, SpecialFunctionsHaveKnownValues) {
  const Known known[] = {
#include "special_values.inc"
  };
  for (const auto& k : known) {
    EXPECT_NEAR(k.got, k.want, 1.5e-13 * std::fabs(k.want)) << k.name;
  }
}

TEST(ScalarMath, InverseErrorFunctionsInvert) {
  for (double p = 1e-300; p < 0.5; p *= 7.3) {
    EXPECT_NEAR(m::ndtr(m::ndtri(p)) / p, 1.0, 1e-12) << p;
  }
  for (double x = -0.99; x < 1; x += 0.01) EXPECT_NEAR(m::erf(m::erfinv(x)), x, 4e-16) << x;
}

TEST(ScalarMath, ComplexFunctionsKeepSmallArguments) {
  const facula::complex128 z{1e-12, 2e-12};
  EXPECT_DOUBLE_EQ(m::expm1(z).re, 1e-12 - 1.5e-24);
  EXPECT_DOUBLE_EQ(m::log1p(z).re, 1e-12 + 1.5e-24);
  EXPECT_DOUBLE_EQ(m::log1p(z).im, std::atan2(2e-12, 1 + 1e-12));
}

}  // namespace
