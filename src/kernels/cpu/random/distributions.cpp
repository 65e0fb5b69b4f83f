// Uniforms, normals and what follows from one of them by a formula.
#include "kernels/cpu/random/distributions.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <numbers>

#include "core/error.h"
#include "kernels/cpu/random/stream.h"

namespace facula::dist {

namespace {

constexpr double two_pi = 2 * std::numbers::pi;

// PyTorch's build fuses u * width + from; a separate rounding of the product would show.
template <class T>
T stretch(T u, T width, T from) {
  return from == T(0) ? u * width : std::fma(u, width, from);
}

// --- Box-Muller on blocks of 16 -------------------------------------------------------------
// The first 8 uniforms of a block give the radii, the others the angles. These loops have no
// branches, so that the compiler can use vectors.

constexpr int block = 16, half_block = 8;

// Natural logarithm of u in [2^-24, 1] (polynomial: Cephes logf).
inline float log_unit(float u) {
  constexpr int32_t root_half = 0x3f3504f3;  // bits of sqrt(1/2)
  const int32_t offset = std::bit_cast<int32_t>(u) - root_half;
  const float e = static_cast<float>(offset >> 23);
  const float x = std::bit_cast<float>((offset & 0x7fffff) + root_half) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * x - 1.1514610310e-1f;
  p = p * x + 1.1676998740e-1f;
  p = p * x - 1.2420140846e-1f;
  p = p * x + 1.4249322787e-1f;
  p = p * x - 1.6668057665e-1f;
  p = p * x + 2.0000714765e-1f;
  p = p * x - 2.4999993993e-1f;
  p = p * x + 3.3333331174e-1f;
  const float square = x * x;
  const float tail = p * x * square - 2.12194440e-4f * e - 0.5f * square;
  return x + tail + 0.693359375f * e;
}

struct SinCos {
  float sin, cos;
};

// For angles of [0, 2 pi] (polynomials: Cephes sinf and cosf).
inline SinCos sincos_turn(float theta) {
  const int32_t quadrant = static_cast<int32_t>(theta * 0.636619772f + 0.5f);
  const float q = static_cast<float>(quadrant);
  // pi/2 in three pieces, so that the products with q are exact.
  const float y = ((theta - q * 1.5703125f) - q * 4.837512969970703125e-4f) - q * 7.549789948e-8f;
  const float z = y * y;
  const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * y + y;
  const float c =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
      0.5f * z + 1.0f;
  const uint32_t s_bits = std::bit_cast<uint32_t>(s), c_bits = std::bit_cast<uint32_t>(c);
  const uint32_t quarter = static_cast<uint32_t>(quadrant), odd = 0u - (quarter & 1u);
  const uint32_t sine = (s_bits & ~odd) | (c_bits & odd), cosine = (c_bits & ~odd) | (s_bits & odd);
  return {std::bit_cast<float>(sine ^ (quarter & 2u) << 30),
          std::bit_cast<float>(cosine ^ ((quarter + 1u) & 2u) << 30)};
}

void box_muller(float* x, float mean, float std) {
  float radii[half_block], cosines[half_block], sines[half_block];
  for (int i = 0; i < half_block; ++i) radii[i] = -2.0f * log_unit(1.0f - x[i]);
  // By itself, because a square root that may set errno keeps a loop from vectorising.
  for (float& r : radii) r = std::sqrt(r);
  for (int i = 0; i < half_block; ++i) {
    const SinCos turn = sincos_turn(static_cast<float>(two_pi) * x[i + half_block]);
    cosines[i] = radii[i] * turn.cos * std + mean;
    sines[i] = radii[i] * turn.sin * std + mean;
  }
  std::copy(cosines, cosines + half_block, x);
  std::copy(sines, sines + half_block, x + half_block);
}

void box_muller(double* x, double mean, double std) {
  for (int i = 0; i < half_block; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - x[i]));
    const double theta = two_pi * x[i + half_block];
    x[i] = std::fma(radius * std::cos(theta), std, mean);
    x[i + half_block] = std::fma(radius * std::sin(theta), std, mean);
  }
}

void fill_units(Generator& g, float* out, int64_t n) {
  for_each_word(g, n, [=](int64_t i, uint32_t word) { out[i] = unit_float(word); });
}
void fill_units(Generator& g, double* out, int64_t n) {
  for_each_unit(g, n, [=](int64_t i, double u) { out[i] = u; });
}

// n >= 16. A rest of less than 16 redraws the last 16 values.
template <class T>
void normal_blocks(Generator& g, T* out, int64_t n, T mean, T std) {
  fill_units(g, out, n);
  for_each_draw(g, n / block, [&](int64_t k) { box_muller(out + k * block, mean, std); });
  if (n % block == 0) return;
  fill_units(g, out + n - block, block);
  box_muller(out + n - block, mean, std);
}

// Reduced precision computes a block at a time in float, and draws nothing for the rest but the
// block that covers it.
template <class T>
void normal_blocks_reduced(Generator& g, T* out, int64_t n, float mean, float std) {
  const auto one_block = [&](T* to) {
    float values[block];
    fill_units(g, values, block);
    box_muller(values, mean, std);
    for (int i = 0; i < block; ++i) to[i] = T(values[i]);
  };
  for_each_draw(g, n / block, [&](int64_t k) { one_block(out + k * block); });
  if (n % block != 0) one_block(out + n - block);
}

template <class T>
T from_bit(bool bit) {
  if constexpr (is_reduced<T>)
    return bit ? T(1.0f) : T(0.0f);
  else
    return static_cast<T>(bit);
}

// The x86 conversion, which PyTorch's results show: out of range gives the smallest integer.
template <class T>
T truncate(double x) {
  if constexpr (is_float<T>) {
    return static_cast<T>(x);
  } else {
    using Wide = std::conditional_t<(sizeof(T) > 4), int64_t, int32_t>;
    constexpr double limit = sizeof(Wide) == 8 ? 0x1p63 : 0x1p31;
    const bool fits = x > -limit - 1 && x < limit;
    return static_cast<T>(fits ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min());
  }
}

}  // namespace

double next_normal(Generator& g) {
  if (g.next_double_normal) {
    const double cached = *g.next_double_normal;
    g.next_double_normal.reset();
    return cached;
  }
  const double u1 = next_unit(g), u2 = next_unit(g);
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), theta = two_pi * u1;
  g.next_double_normal = radius * std::sin(theta);
  return radius * std::cos(theta);
}

// Rounding may reach the excluded end `to`; PyTorch then gives `from`.
template <class T>
void uniform(Generator& g, T* out, int64_t n, double from, double to) {
  const std::lock_guard lock(g.mutex());
  if constexpr (std::is_same_v<T, double>) {
    const double width = to - from;
    for_each_unit(g, n, [=](int64_t i, double u) {
      const double value = stretch(u, width, from);
      out[i] = value == to ? from : value;
    });
  } else {
    const float low = static_cast<float>(from), width = static_cast<float>(to) - low;
    const T start = T(low), end = T(static_cast<float>(to));
    for_each_word(g, n, [=](int64_t i, uint32_t word) {
      const T value = T(stretch(unit_float(word), width, low));
      out[i] = value == end ? start : value;
    });
  }
}

template <class T>
void normal(Generator& g, T* out, int64_t n, double mean, double std, bool contiguous) {
  const std::lock_guard lock(g.mutex());
  if (n < block || !contiguous) {
    for_each_draw(g, n,
                  [&](int64_t i) { out[i] = static_cast<T>(std::fma(next_normal(g), std, mean)); });
  } else if constexpr (is_reduced<T>) {
    normal_blocks_reduced(g, out, n, static_cast<float>(mean), static_cast<float>(std));
  } else {
    normal_blocks(g, out, n, static_cast<T>(mean), static_cast<T>(std));
  }
}

template <class T>
void bernoulli_scalar(Generator& g, T* out, int64_t n, double p) {
  check(p >= 0 && p <= 1, "bernoulli(): expected p in [0, 1]; got p=", p);
  const std::lock_guard lock(g.mutex());
  // u < p for a u of 53 bits, compared as integers.
  const uint64_t limit = static_cast<uint64_t>(std::ceil(p * 0x1p53));
  for_each_pair(g, n,
                [=](int64_t i, uint64_t word) { out[i] = from_bit<T>(unit_bits(word) < limit); });
}

template <class T, class P>
void bernoulli_each(Generator& g, T* out, const P* p, int64_t n) {
  const std::lock_guard lock(g.mutex());
  using Chance = std::conditional_t<std::is_same_v<P, double>, double, float>;
  for_each_draw(g, n, [&](int64_t i) {
    const Chance chance = static_cast<Chance>(p[i]);
    check(chance >= 0 && chance <= 1, "bernoulli(): expected p in [0, 1]; got p=", chance);
    if constexpr (std::is_same_v<P, double>)
      out[i] = from_bit<T>(next_unit(g) < chance);
    else
      out[i] = from_bit<T>(unit_float(g.next32()) < chance);
  });
}

template <class T>
void exponential(Generator& g, T* out, int64_t n, double lambda) {
  const std::lock_guard lock(g.mutex());
  const double scale = -1.0 / lambda;
  for_each_unit(g, n,
                [=](int64_t i, double u) { out[i] = static_cast<T>(scale * std::log1p(-u)); });
}

template <class T>
void cauchy(Generator& g, T* out, int64_t n, double median, double sigma) {
  const std::lock_guard lock(g.mutex());
  for_each_unit(g, n, [=](int64_t i, double u) {
    out[i] = static_cast<T>(std::fma(sigma, std::tan(std::numbers::pi * (u - 0.5)), median));
  });
}

template <class T>
void log_normal(Generator& g, T* out, int64_t n, double mean, double std) {
  const std::lock_guard lock(g.mutex());
  for_each_draw(g, n, [&](int64_t i) {
    out[i] = static_cast<T>(std::exp(std::fma(next_normal(g), std, mean)));
  });
}

template <class T>
void geometric(Generator& g, T* out, int64_t n, double p) {
  const std::lock_guard lock(g.mutex());
  const double log_miss = std::log1p(-p);
  for_each_unit(
      g, n, [=](int64_t i, double u) { out[i] = truncate<T>(std::ceil(std::log(u) / log_miss)); });
}

#define FACULA_FLOATING(T)                                                \
  template void uniform<T>(Generator&, T*, int64_t, double, double);      \
  template void normal<T>(Generator&, T*, int64_t, double, double, bool); \
  template void exponential<T>(Generator&, T*, int64_t, double);          \
  template void cauchy<T>(Generator&, T*, int64_t, double, double);       \
  template void log_normal<T>(Generator&, T*, int64_t, double, double);
FACULA_FLOATING(float)
FACULA_FLOATING(double)
FACULA_FLOATING(Half)
FACULA_FLOATING(BFloat16)

#define FACULA_ARITHMETIC(T)                                                       \
  template void bernoulli_scalar<T>(Generator&, T*, int64_t, double);              \
  template void bernoulli_each<T, float>(Generator&, T*, const float*, int64_t);   \
  template void bernoulli_each<T, double>(Generator&, T*, const double*, int64_t); \
  template void bernoulli_each<T, Half>(Generator&, T*, const Half*, int64_t);     \
  template void bernoulli_each<T, BFloat16>(Generator&, T*, const BFloat16*, int64_t);
FACULA_ARITHMETIC(float)
FACULA_ARITHMETIC(double)
FACULA_ARITHMETIC(Half)
FACULA_ARITHMETIC(BFloat16)
FACULA_ARITHMETIC(bool)
FACULA_ARITHMETIC(uint8_t)
FACULA_ARITHMETIC(int8_t)
FACULA_ARITHMETIC(int16_t)
FACULA_ARITHMETIC(int32_t)
FACULA_ARITHMETIC(int64_t)

template void geometric<float>(Generator&, float*, int64_t, double);
template void geometric<double>(Generator&, double*, int64_t, double);
template void geometric<Half>(Generator&, Half*, int64_t, double);
template void geometric<BFloat16>(Generator&, BFloat16*, int64_t, double);
template void geometric<uint8_t>(Generator&, uint8_t*, int64_t, double);
template void geometric<int8_t>(Generator&, int8_t*, int64_t, double);
template void geometric<int16_t>(Generator&, int16_t*, int64_t, double);
template void geometric<int32_t>(Generator&, int32_t*, int64_t, double);
template void geometric<int64_t>(Generator&, int64_t*, int64_t, double);

}  // namespace facula::dist
