// Matrix products and convolutions against plain loops, for every instruction set that is built and
// that this machine has. Elements are small whole numbers: every sum is exact, so results must be
// equal and not just near.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/threads.h"
#include "kernels/cpu/conv/core.h"
#include "kernels/cpu/matmul/gemm.h"

namespace facula::cpu {

FACULA_PER_ISA(template <class T> void gemm(const GemmArgs<T>&); template <class T>
               void gemm_batched(const GemmArgs<T>&, int64_t, int64_t, int64_t, int64_t);
               template <class T> void conv_forward(const ConvShape&, ConvTensor<const T>,
                                                    ConvTensor<const T>, const T*, ConvTensor<T>);
               template <class T>
               void conv_backward_input(const ConvShape&, ConvTensor<const T>, ConvTensor<const T>,
                                        const T*, ConvTensor<T>);
               template <class T> void conv_backward_weight(const ConvShape&, ConvTensor<const T>,
                                                            ConvTensor<const T>, ConvTensor<T>);
               template <class T>
               void conv_backward_bias(const ConvShape&, ConvTensor<const T>, T*);)

namespace {

// The functions of one instruction set for one element type.
template <class T>
struct Functions {
  const char* name;
  bool usable;
  void (*gemm)(const GemmArgs<T>&);
  void (*gemm_batched)(const GemmArgs<T>&, int64_t, int64_t, int64_t, int64_t);
  void (*forward)(const ConvShape&, ConvTensor<const T>, ConvTensor<const T>, const T*,
                  ConvTensor<T>);
  void (*backward_input)(const ConvShape&, ConvTensor<const T>, ConvTensor<const T>, const T*,
                         ConvTensor<T>);
  void (*backward_weight)(const ConvShape&, ConvTensor<const T>, ConvTensor<const T>,
                          ConvTensor<T>);
  void (*backward_bias)(const ConvShape&, ConvTensor<const T>, T*);
};

template <class T>
std::vector<Functions<T>> all_sets() {
  std::vector<Functions<T>> sets = {{"base", true, base::gemm<T>, base::gemm_batched<T>,
                                     base::conv_forward<T>, base::conv_backward_input<T>,
                                     base::conv_backward_weight<T>, base::conv_backward_bias<T>}};
#ifdef FACULA_HAS_AVX2
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  sets.push_back({"avx2", has_avx2, avx2::gemm<T>, avx2::gemm_batched<T>, avx2::conv_forward<T>,
                  avx2::conv_backward_input<T>, avx2::conv_backward_weight<T>,
                  avx2::conv_backward_bias<T>});
#endif
#ifdef FACULA_HAS_AVX512
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  sets.push_back({"avx512", has_avx512, avx512::gemm<T>, avx512::gemm_batched<T>,
                  avx512::conv_forward<T>, avx512::conv_backward_input<T>,
                  avx512::conv_backward_weight<T>, avx512::conv_backward_bias<T>});
#endif
  std::erase_if(sets, [](const Functions<T>& s) { return !s.usable; });
  return sets;
}

// What references are computed in, exactly.
template <class T>
struct Exact {
  using type = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
};
template <class R>
struct Exact<Complex<R>> {
  using type = std::complex<double>;
};
template <class T>
using exact_t = typename Exact<T>::type;

template <class T>
exact_t<T> widen(T x) {
  if constexpr (is_complex_v<T>) {
    return {x.re, x.im};
  } else {
    return static_cast<exact_t<T>>(x);
  }
}
template <class T>
T narrow(exact_t<T> x) {
  if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    return T(static_cast<R>(x.real()), static_cast<R>(x.imag()));
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
class Sizes : public testing::Test {
 protected:
  std::mt19937 random{7};

  int64_t pick(std::vector<int64_t> from) { return from[random() % from.size()]; }
  T element() {
    const int whole = static_cast<int>(random() % 7) - 3;
    if constexpr (is_complex_v<T>) {
      using R = typename T::value_type;
      return T(R(whole), R(static_cast<int>(random() % 5) - 2));
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(whole * 41);  // products leave the range of the small integers
    } else {
      return T(static_cast<float>(whole));
    }
  }
};

using ElementTypes =
    testing::Types<float, double, Half, BFloat16, complex64, complex128, int8_t, int16_t, int32_t,
                   int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Sizes, ElementTypes);

// A tensor of any rank in its own storage, laid out in one of several ways, with canaries between
// and around its elements.
template <class T>
struct Strided {
  std::vector<int64_t> sizes, strides;
  std::vector<T> storage;
  int64_t origin = 0;

  // gap 2 leaves every second element out; `order` lists dimensions from the outermost.
  Strided(std::vector<int64_t> shape, std::vector<int> order, int64_t gap, bool backwards)
      : sizes(shape), strides(shape.size()) {
    int64_t step = gap;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = step;
      step *= std::max<int64_t>(sizes[order[i]], 1);
    }
    storage.resize(step + 16);
    origin = 8;
    if (backwards && sizes[0] > 0) {
      origin += (sizes[0] - 1) * strides[0];
      strides[0] = -strides[0];
    }
  }
  T* data() { return storage.data() + origin; }
  T& at(std::initializer_list<int64_t> index) {
    int64_t offset = origin;
    size_t d = 0;
    for (int64_t i : index) offset += i * strides[d++];
    return storage[offset];
  }
  template <class F>
  void fill(F&& element) {
    for (T& x : storage) x = element();
  }
};

template <class T, class Random>
Strided<T> some_layout(std::vector<int64_t> shape, Random& random) {
  std::vector<int> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const unsigned kind = random() % 4;
  if (kind != 0) std::shuffle(order.begin(), order.end(), random);
  return Strided<T>(shape, order, kind == 3 ? 2 : 1, kind == 2);
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Values that are equal as numbers: a sum of zeros may have either sign.
template <class T>
bool same_values(const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (widen(a[i]) != widen(b[i])) return false;
  }
  return a.size() == b.size();
}

template <class T>
GemmArgs<T> arguments(Strided<T>& a, Strided<T>& b, Strided<T>& c) {
  return {a.sizes[0], b.sizes[1],   a.sizes[1],   a.data(), a.strides[0], a.strides[1],
          b.data(),   b.strides[0], b.strides[1], c.data(), c.strides[0], c.strides[1]};
}

template <class T>
void plain_gemm(Strided<T>& a, Strided<T>& b, Strided<T>& c, exact_t<T> alpha, exact_t<T> beta) {
  for (int64_t i = 0; i < c.sizes[0]; ++i) {
    for (int64_t j = 0; j < c.sizes[1]; ++j) {
      exact_t<T> sum = 0;
      for (int64_t p = 0; p < a.sizes[1]; ++p) sum += widen(a.at({i, p})) * widen(b.at({p, j}));
      c.at({i, j}) = narrow<T>(alpha * sum + beta * widen(c.at({i, j})));
    }
  }
}

// An activation that rounds nothing and shows whether it was applied once to each result.
template <class T>
T negated(T x) {
  if constexpr (is_complex_v<T>)
    return x;
  else
    return static_cast<T>(T(0) - x);
}
template <class T>
void negate_all(char* const* data, const int64_t* steps, int64_t n, const void*) {
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(data[0] + i * steps[0]) =
        negated(*reinterpret_cast<const T*>(data[1] + i * steps[1]));
}

TYPED_TEST(Sizes, GemmEqualsPlainLoops) {
  using T = TypeParam;
  for (const auto& set : all_sets<T>()) {
    for (int trial = 0; trial < 120; ++trial) {
      const auto size = [&] {
        return this->pick({0, 1, 2, 3, 5, 8, 13, 15, 16, 17, 31, 33, 48, 64, 65, 100, 130, 270});
      };
      const int64_t m = size(), n = size(), k = size();
      auto a = some_layout<T>({m, k}, this->random), b = some_layout<T>({k, n}, this->random);
      auto c = some_layout<T>({m, n}, this->random);
      for (auto* t : {&a, &b, &c}) t->fill([&] { return this->element(); });
      auto args = arguments(a, b, c);
      const int alpha = static_cast<int>(this->random() % 3), beta = this->random() % 3;
      args.alpha = accumulate_t<T>(alpha);
      args.beta = accumulate_t<T>(beta);
      if (!is_complex_v<T> && trial % 2 == 1) args.activation = negate_all<accumulate_t<T>>;
      auto expected = c;
      std::vector<T> row(static_cast<size_t>(n));
      if (beta == 1 && trial % 3 > 0) {
        for (T& x : row) x = this->element();
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) expected.at({i, j}) = row[static_cast<size_t>(j)];
        args.row = row.data();
      }
      plain_gemm<T>(a, b, expected, alpha, beta);
      if (args.activation) {
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) expected.at({i, j}) = negated(expected.at({i, j}));
      }
      set.gemm(args);
      ASSERT_TRUE(same_values(c.storage, expected.storage))
          << set.name << " m " << m << " n " << n << " k " << k << " alpha " << alpha << " beta "
          << beta << " strides " << args.a_rs << "," << args.a_cs << " " << args.b_rs << ","
          << args.b_cs << " " << args.c_rs << "," << args.c_cs;
    }
  }
}

TYPED_TEST(Sizes, BatchedGemmEqualsSingleOnes) {
  using T = TypeParam;
  for (const auto& set : all_sets<T>()) {
    for (int trial = 0; trial < 30; ++trial) {
      const int64_t batch = this->pick({0, 1, 2, 9, 40}), m = this->pick({1, 3, 16, 40});
      const int64_t n = this->pick({1, 5, 33}), k = this->pick({1, 4, 70});
      auto a = some_layout<T>({batch, m, k}, this->random);
      auto b = some_layout<T>({batch, k, n}, this->random);
      auto c = some_layout<T>({batch, m, n}, this->random);
      for (auto* t : {&a, &b, &c}) t->fill([&] { return this->element(); });
      const int64_t b_bs = trial % 3 == 0 ? 0 : b.strides[0];
      GemmArgs<T> args{m,
                       n,
                       k,
                       a.data(),
                       a.strides[1],
                       a.strides[2],
                       b.data(),
                       b.strides[1],
                       b.strides[2],
                       c.data(),
                       c.strides[1],
                       c.strides[2]};
      auto expected = c;
      for (int64_t i = 0; i < batch; ++i) {
        GemmArgs<T> one = args;
        one.a += i * a.strides[0];
        one.b += i * b_bs;
        one.c = expected.data() + i * c.strides[0];
        set.gemm(one);
      }
      set.gemm_batched(args, batch, a.strides[0], b_bs, c.strides[0]);
      ASSERT_TRUE(same_values(c.storage, expected.storage)) << set.name << " batch " << batch;
    }
  }
}

TEST(Gemm, ReadsOnlyWhatItsFactorsAskFor) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& set : all_sets<float>()) {
    for (int64_t size : {2, 40}) {
      std::vector<float> a(size * size, 1.0f), b(size * size, 1.0f), c(size * size, nan);
      GemmArgs<float> args{size,     size, size, a.data(), size, 1,
                           b.data(), size, 1,    c.data(), size, 1};
      set.gemm(args);
      EXPECT_EQ(c, std::vector<float>(size * size, float(size))) << "beta 0 read C";
      a.assign(a.size(), nan);
      args.alpha = 0;
      args.beta = 2;
      set.gemm(args);
      EXPECT_EQ(c, std::vector<float>(size * size, 2.0f * size)) << "alpha 0 read A";
      args.alpha = 1;
      args.beta = 0;
      set.gemm(args);
      for (float x : c) EXPECT_TRUE(std::isnan(x)) << "a NaN in A was lost";
    }
  }
}

TEST(Gemm, InfinitiesSurviveComplexProducts) {
  using C = complex64;
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& set : all_sets<C>()) {
    std::vector<C> a(400, C(1.0f, 1.0f)), b(400, C(0.0f, 0.0f)), c(400);
    b[0] = C(inf, -inf);
    set.gemm({20, 20, 20, a.data(), 20, 1, b.data(), 20, 1, c.data(), 20, 1});
    EXPECT_EQ(c[0].re, inf);
    EXPECT_TRUE(std::isnan(c[0].im));
    EXPECT_EQ(c[1].re, 0.0f);
  }
}

TEST(Gemm, SameBitsForAnyNumberOfThreads) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const int before = num_threads();
  for (const auto& set : all_sets<float>()) {
    for (int64_t m : {1, 7, 300}) {
      const int64_t n = 701, k = 513;
      std::vector<float> a(m * k), b(k * n), one(m * n), many(m * n);
      for (auto* v : {&a, &b}) {
        for (float& x : *v) x = normal(random);
      }
      for (const bool flip : {false, true}) {
        const int64_t b_rs = flip ? 1 : n, b_cs = flip ? k : 1;
        set_num_threads(1);
        set.gemm({m, n, k, a.data(), k, 1, b.data(), b_rs, b_cs, one.data(), n, 1});
        set_num_threads(5);
        set.gemm({m, n, k, a.data(), k, 1, b.data(), b_rs, b_cs, many.data(), n, 1});
        EXPECT_TRUE(same_bytes(one, many)) << set.name << " m " << m;
      }
    }
  }
  set_num_threads(before);
}

// Calls body(image, group, out channel, channel, output place, tap, input place) for every product
// of a convolution.
template <class F>
void for_each_product(const ConvShape& s, F&& body) {
  const int64_t ci = s.in_channels / s.groups, co = s.out_channels / s.groups;
  const int64_t* o = s.output;
  const int64_t* k = s.kernel;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      for (int64_t at = 0; at < o[0] * o[1] * o[2]; ++at) {
        const int64_t out[3] = {at / (o[1] * o[2]), at / o[2] % o[1], at % o[2]};
        for (int64_t t = 0; t < k[0] * k[1] * k[2]; ++t) {
          const int64_t tap[3] = {t / (k[1] * k[2]), t / k[2] % k[1], t % k[2]};
          int64_t in[3];
          bool inside = true;
          for (int d = 0; d < 3; ++d) {
            in[d] = out[d] * s.stride[d] + tap[d] * s.dilation[d] - s.padding[d];
            inside &= in[d] >= 0 && in[d] < s.input[d];
          }
          if (!inside) continue;
          for (int64_t c = 0; c < ci; ++c) body(n, oc, oc / co * ci + c, c, out, tap, in);
        }
      }
    }
  }
}

template <class T>
struct ConvCase {
  ConvShape shape;
  Strided<T> input, weight, output;

  template <class Random>
  ConvCase(const ConvShape& s, Random& random)
      : shape(s),
        input(some_layout<T>({s.batch, s.in_channels, s.input[0], s.input[1], s.input[2]}, random)),
        weight(some_layout<T>(
            {s.out_channels, s.in_channels / s.groups, s.kernel[0], s.kernel[1], s.kernel[2]},
            random)),
        output(some_layout<T>({s.batch, s.out_channels, s.output[0], s.output[1], s.output[2]},
                              random)) {}

  // The sums of products onto `to`, one of the three tensors, which holds zeros or biases.
  void add_products(Strided<T>& to) {
    std::vector<exact_t<T>> sums(to.storage.size());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = widen(to.storage[i]);
    for_each_product(shape, [&](int64_t n, int64_t oc, int64_t ic, int64_t c, const int64_t* o,
                                const int64_t* t, const int64_t* i) {
      T& x = input.at({n, ic, i[0], i[1], i[2]});
      T& w = weight.at({oc, c, t[0], t[1], t[2]});
      T& y = output.at({n, oc, o[0], o[1], o[2]});
      if (&to == &input) sums[&x - input.storage.data()] += widen(w) * widen(y);
      if (&to == &weight) sums[&w - weight.storage.data()] += widen(x) * widen(y);
      if (&to == &output) sums[&y - output.storage.data()] += widen(x) * widen(w);
    });
    for (size_t i = 0; i < sums.size(); ++i) to.storage[i] = narrow<T>(sums[i]);
  }
};

template <class T>
ConvTensor<T> view(Strided<T>& t) {
  ConvTensor<T> v{t.data(), {}};
  std::copy(t.strides.begin(), t.strides.end(), v.strides);
  return v;
}
template <class T>
ConvTensor<const T> const_view(Strided<T>& t) {
  const auto v = view(t);
  ConvTensor<const T> c{v.data, {}};
  std::copy(v.strides, v.strides + 5, c.strides);
  return c;
}

// Writes `start(channel)` to every element of a tensor and leaves its canaries alone.
template <class T, class F>
void start_with(Strided<T>& t, int channel_dimension, F&& start) {
  const auto& z = t.sizes;
  for (int64_t i = 0; i < z[0]; ++i) {
    for (int64_t j = 0; j < z[1]; ++j) {
      for (int64_t p = 0; p < z[2] * z[3] * z[4]; ++p) {
        T& x = t.at({i, j, p / (z[3] * z[4]), p / z[4] % z[3], p % z[4]});
        x = start(channel_dimension == 0 ? i : j);
      }
    }
  }
}

template <class Pick>
ConvShape some_shape(Pick&& pick) {
  ConvShape s{};
  s.batch = pick({1, 2, 9});
  s.groups = pick({1, 1, 2, 5});
  s.in_channels = s.groups * pick({1, 3, 4, 9, 17});
  s.out_channels = s.groups * pick({1, 2, 5, 16, 19});
  const int64_t flat_dimensions = pick({0, 1, 1, 1, 2});
  for (int d = 0; d < 3; ++d) {
    s.input[d] = s.output[d] = s.kernel[d] = s.stride[d] = s.dilation[d] = 1;
    if (d < flat_dimensions) continue;
    s.kernel[d] = pick({1, 2, 3, 3, 5});
    s.stride[d] = pick({1, 1, 2, 3});
    s.dilation[d] = pick({1, 1, 2, 3});
    s.padding[d] = pick({0, 1, 2, 4});
    const int64_t reach = s.dilation[d] * (s.kernel[d] - 1) + 1;
    const int64_t least = std::max<int64_t>(reach - 2 * s.padding[d], 1);
    s.input[d] = std::max(least, flat_dimensions == 0 ? pick({1, 3, 5}) : pick({1, 4, 8, 9, 17}));
    s.output[d] = (s.input[d] + 2 * s.padding[d] - reach) / s.stride[d] + 1;
  }
  return s;
}

int64_t products(const ConvShape& s) {
  int64_t n = s.batch * s.out_channels * (s.in_channels / s.groups);
  for (int d = 0; d < 3; ++d) n *= s.output[d] * s.kernel[d];
  return n;
}

TYPED_TEST(Sizes, ConvolutionsEqualPlainLoops) {
  using T = TypeParam;
  const auto sets = all_sets<T>();
  for (int trial = 0; trial < 60; ++trial) {
    const ConvShape s = some_shape([&](std::vector<int64_t> from) { return this->pick(from); });
    if (products(s) > 1'500'000) continue;
    ConvCase<T> data(s, this->random);
    for (auto* t : {&data.input, &data.weight, &data.output})
      t->fill([&] { return this->element(); });
    std::vector<T> out_bias(s.out_channels), in_bias(s.in_channels);
    for (auto* bias : {&out_bias, &in_bias}) {
      for (T& x : *bias) x = this->element();
    }
    auto forward = data, backward = data, weight = data;
    start_with(forward.output, 1, [&](int64_t c) { return out_bias[c]; });
    forward.add_products(forward.output);
    start_with(backward.input, 1, [&](int64_t c) { return in_bias[c]; });
    backward.add_products(backward.input);
    start_with(weight.weight, 0, [](int64_t) { return narrow<T>(exact_t<T>(0)); });
    weight.add_products(weight.weight);
    std::vector<exact_t<T>> bias_sums(s.out_channels);
    start_with(data.output, 1, [&](int64_t c) {
      const T x = this->element();
      bias_sums[c] += widen(x);
      return x;
    });
    for (const auto& set : sets) {
      auto got = forward;
      start_with(got.output, 1, [&](int64_t) { return this->element(); });
      set.forward(s, const_view(got.input), const_view(got.weight), out_bias.data(),
                  view(got.output));
      ASSERT_TRUE(same_values(got.output.storage, forward.output.storage)) << set.name << trial;
      got = backward;
      start_with(got.input, 1, [&](int64_t) { return this->element(); });
      set.backward_input(s, const_view(got.output), const_view(got.weight), in_bias.data(),
                         view(got.input));
      ASSERT_TRUE(same_values(got.input.storage, backward.input.storage)) << set.name << trial;
      got = weight;
      start_with(got.weight, 0, [&](int64_t) { return this->element(); });
      set.backward_weight(s, const_view(got.output), const_view(got.input), view(got.weight));
      ASSERT_TRUE(same_values(got.weight.storage, weight.weight.storage)) << set.name << trial;
      std::vector<T> sums(s.out_channels);
      set.backward_bias(s, const_view(data.output), sums.data());
      for (int64_t c = 0; c < s.out_channels; ++c)
        ASSERT_EQ(widen(sums[c]), widen(narrow<T>(bias_sums[c]))) << set.name << trial;
    }
  }
}

TEST(Conv, EmptyBatchGivesZeroGradients) {
  ConvShape s{0, 1, 4, 3, {1, 8, 8}, {1, 6, 6}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  for (const auto& set : all_sets<float>()) {
    std::vector<float> weight(4 * 3 * 9, 5.0f), bias(3, 5.0f);
    const float* none = nullptr;
    set.backward_weight(s, {none, {108, 36, 36, 6, 1}}, {none, {256, 64, 64, 8, 1}},
                        {weight.data(), {36, 9, 9, 3, 1}});
    set.backward_bias(s, {none, {108, 36, 36, 6, 1}}, bias.data());
    EXPECT_EQ(weight, std::vector<float>(weight.size(), 0.0f));
    EXPECT_EQ(bias, std::vector<float>(3, 0.0f));
  }
}

TEST(Conv, SameBitsForAnyNumberOfThreads) {
  ConvShape s{12, 1, 24, 40, {1, 20, 20}, {1, 20, 20}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}};
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const int before = num_threads();
  for (const auto& set : all_sets<float>()) {
    ConvCase<float> one(s, random);
    for (auto* t : {&one.input, &one.weight, &one.output}) t->fill([&] { return normal(random); });
    auto many = one;
    for (auto* c : {&one, &many}) {
      set_num_threads(c == &one ? 1 : 5);
      set.backward_weight(s, const_view(c->output), const_view(c->input), view(c->weight));
      set.backward_input(s, const_view(c->output), const_view(c->weight), nullptr, view(c->input));
      set.forward(s, const_view(c->input), const_view(c->weight), nullptr, view(c->output));
    }
    EXPECT_TRUE(same_bytes(one.weight.storage, many.weight.storage)) << set.name;
    EXPECT_TRUE(same_bytes(one.input.storage, many.input.storage)) << set.name;
    EXPECT_TRUE(same_bytes(one.output.storage, many.output.storage)) << set.name;
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace facula::cpu
