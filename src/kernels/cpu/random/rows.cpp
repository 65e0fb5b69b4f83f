#include "kernels/cpu/random/rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/twister_loops.h"
#include "kernels/cpu/random/units.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Box-Muller on blocks of 16: the first 8 uniforms of a block give the radii, the others the
// angles. These loops have no branches, so that the compiler can use vectors.

constexpr int block = 16, half_block = 8;
constexpr float two_pi = static_cast<float>(2 * std::numbers::pi);

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
    const SinCos turn = sincos_turn(two_pi * x[i + half_block]);
    cosines[i] = radii[i] * turn.cos * std + mean;
    sines[i] = radii[i] * turn.sin * std + mean;
  }
  std::copy(cosines, cosines + half_block, x);
  std::copy(sines, sines + half_block, x + half_block);
}

}  // namespace

void twist_words(uint32_t* state) { twister::twist_all(state); }
void temper_words(const uint32_t* state, int64_t n, uint32_t* out) {
  twister::temper_all(state, n, out);
}

void unit_row(const uint32_t* words, int64_t n, double* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = dist::unit_double(dist::pair_at(words, i));
}

void normal_pairs(const double* units, int64_t n, double* cosines, double* sines) {
  namespace math = scalar::math;
  constexpr double two_pi = 2 * std::numbers::pi;
  for (int64_t i = 0; i < n; ++i) {
    const double radius = math::sqrt(-2.0 * math::log1p(-units[i + 1]));
    const auto turn = math::detail::reduce_fast<double>(two_pi * units[i]);
    cosines[i] = radius * math::detail::sin_reduced<double>(turn, 1);
    sines[i] = radius * math::detail::sin_reduced<double>(turn);
  }
}

void uniform_row(const uint32_t* words, int64_t n, UniformRange range, float* out) {
  const auto [from, width, to] = range;
  const auto fill = [=](auto&& stretch) {
    for (int64_t i = 0; i < n; ++i) {
      const float value = stretch(dist::unit_float(words[i]));
      out[i] = value == to ? from : value;
    }
  };
  // PyTorch's build fuses u * width + from; a separate rounding of the product would show.
  if (from == 0.0f)
    fill([=](float u) { return u * width; });
  else
    fill([=](float u) { return std::fma(u, width, from); });
}

void normal_row(float* x, int64_t blocks, float mean, float std) {
  for (int64_t k = 0; k < blocks; ++k) box_muller(x + k * block, mean, std);
}

void below_row(const uint32_t* words, int64_t n, uint64_t limit, uint8_t* out) {
  const auto most = static_cast<int64_t>(limit);
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<int64_t>(dist::unit_bits(dist::pair_at(words, i))) < most;
}

void exponential_row(const uint32_t* words, int64_t n, double scale, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    const double u = dist::unit_double(dist::pair_at(words, i));
    out[i] = static_cast<float>(scale * scalar::math::log1p(-u));
  }
}

}  // namespace facula::cpu::FACULA_ISA
