// Uniforms, normals and what follows from one of them by a formula.
#include "kernels/cpu/random/distributions.h"

#include <algorithm>
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

// --- Box-Muller on blocks of 16: the first 8 uniforms give the radii, the others the angles

constexpr int block = 16, half_block = 8;

void box_muller(float* x, int64_t blocks, float mean, float std) {
  FACULA_OF_ISA(normal_row)(x, blocks, mean, std);
}
void box_muller(double* x, double mean, double std) {
  for (int i = 0; i < half_block; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - x[i]));
    const double theta = two_pi * x[i + half_block];
    x[i] = std::fma(radius * std::cos(theta), std, mean);
    x[i + half_block] = std::fma(radius * std::sin(theta), std, mean);
  }
}
void box_muller(double* x, int64_t blocks, double mean, double std) {
  for (int64_t k = 0; k < blocks; ++k) box_muller(x + k * block, mean, std);
}

void fill_units(Generator& g, float* out, int64_t n) {
  for_each_run<1>(g, n, [=](int64_t start, const uint32_t* words, int64_t m) {
    FACULA_OF_ISA(uniform_row)(words, m, {0.0f, 1.0f, 1.0f}, out + start);
  });
}
void fill_units(Generator& g, double* out, int64_t n) {
  for_each_unit(g, n, [=](int64_t i, double u) { out[i] = u; });
}

// Calls f(first, count) for runs of n blocks.
template <class F>
void for_each_blocks(Generator& g, int64_t n, F f) {
  constexpr int64_t run = 64;
  for (int64_t k = 0; k < n; k += run) {
    if (k > 0) pause_draw(g);
    f(k, std::min(run, n - k));
  }
}

// n >= 16. A rest of less than 16 redraws the last 16 values.
template <class T>
void normal_blocks(Generator& g, T* out, int64_t n, T mean, T std) {
  fill_units(g, out, n);
  for_each_blocks(g, n / block,
                  [&](int64_t k, int64_t count) { box_muller(out + k * block, count, mean, std); });
  if (n % block == 0) return;
  fill_units(g, out + n - block, block);
  box_muller(out + n - block, 1, mean, std);
}

// Reduced precision computes blocks in float, and draws nothing for the rest but the block that
// covers it.
template <class T>
void normal_blocks_reduced(Generator& g, T* out, int64_t n, float mean, float std) {
  constexpr int64_t run = 64;
  float values[run * block];
  const auto draw = [&](T* to, int64_t count) {
    fill_units(g, values, count * block);
    box_muller(values, count, mean, std);
    for (int64_t i = 0; i < count * block; ++i) to[i] = T(values[i]);
  };
  for_each_blocks(g, n / block, [&](int64_t k, int64_t count) { draw(out + k * block, count); });
  if (n % block != 0) draw(out + n - block, 1);
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

NormalPair normal_pair(double u1, double u2) {
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), theta = two_pi * u1;
  return {radius * std::cos(theta), radius * std::sin(theta)};
}
double next_normal(Generator& g) {
  if (g.next_double_normal) {
    const double cached = *g.next_double_normal;
    g.next_double_normal.reset();
    return cached;
  }
  const double u1 = next_unit(g), u2 = next_unit(g);
  const NormalPair pair = normal_pair(u1, u2);
  g.next_double_normal = pair.second;
  return pair.first;
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
  } else if constexpr (std::is_same_v<T, float>) {
    const float low = static_cast<float>(from), end = static_cast<float>(to);
    for_each_run<1>(g, n, [=](int64_t start, const uint32_t* words, int64_t m) {
      FACULA_OF_ISA(uniform_row)(words, m, {low, end - low, end}, out + start);
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
  const auto below = FACULA_OF_ISA(below_row);
  uint8_t bits[1024];
  for_each_run<2>(g, n, [&](int64_t start, const uint32_t* words, int64_t m) {
    below(words, m, limit, bits);
    for (int64_t i = 0; i < m; ++i) out[start + i] = from_bit<T>(bits[i] != 0);
  });
}

template <class T, class P>
void bernoulli_each(Generator& g, T* out, const P* p, int64_t n) {
  const std::lock_guard lock(g.mutex());
  using Chance = std::conditional_t<std::is_same_v<P, double>, double, float>;
  constexpr int words_each = std::is_same_v<P, double> ? 2 : 1;
  for_each_run<words_each>(g, n, [&](int64_t start, const uint32_t* words, int64_t m) {
    bool all_hold = true;
    for (int64_t i = 0; i < m; ++i) {
      const Chance chance = static_cast<Chance>(p[start + i]);
      all_hold &= (chance >= 0) & (chance <= 1);
      if constexpr (words_each == 2)
        out[start + i] = from_bit<T>(unit_double(pair_at(words, i)) < chance);
      else
        out[start + i] = from_bit<T>(unit_float(words[i]) < chance);
    }
    for (int64_t i = start; i < start + m && !all_hold; ++i) {
      const Chance chance = static_cast<Chance>(p[i]);
      check(chance >= 0 && chance <= 1, "bernoulli(): expected p in [0, 1]; got p=", chance);
    }
  });
}

template <class T>
void exponential(Generator& g, T* out, int64_t n, double lambda) {
  const std::lock_guard lock(g.mutex());
  const double scale = -1.0 / lambda;
  if constexpr (std::is_same_v<T, float>) {
    for_each_run<2>(g, n, [=](int64_t start, const uint32_t* words, int64_t m) {
      FACULA_OF_ISA(exponential_row)(words, m, scale, out + start);
    });
    return;
  }
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
