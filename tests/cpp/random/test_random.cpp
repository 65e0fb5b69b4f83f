// Golden values: all from PyTorch 2.15 (x86, AVX-512).
#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/random/distributions.h"

namespace facula::dist {
namespace {

// FNV-1a.
uint64_t hash_bytes(const void* data, size_t size) {
  uint64_t h = 0xcbf29ce484222325u;
  const auto* bytes = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < size; ++i) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}
uint64_t hash_state(const Generator& g) {
  const Generator::State state = g.get_state();
  return hash_bytes(state.data(), state.size());
}

constexpr auto uniforms = [](Generator& g, auto* x, int64_t n) { uniform(g, x, n, -0.3, 2.4); };
constexpr auto normals = [](Generator& g, auto* x, int64_t n) { normal(g, x, n, 1.0, 2.0, true); };
constexpr auto strided_normals = [](Generator& g, auto* x, int64_t n) {
  normal(g, x, n, 1.0, 2.0, false);
};
constexpr auto coins = [](Generator& g, auto* x, int64_t n) { bernoulli_scalar(g, x, n, 0.3); };
constexpr auto integers = [](Generator& g, auto* x, int64_t n) { random(g, x, n); };
constexpr auto small_range = [](Generator& g, auto* x, int64_t n) {
  random_from_to(g, x, n, 100, -50);
};
constexpr auto wide_range = [](Generator& g, auto* x, int64_t n) {
  random_from_to(g, x, n, uint64_t{1} << 28, 0);
};
constexpr auto full_range = [](Generator& g, auto* x, int64_t n) { random_full(g, x, n); };
constexpr auto permutation = [](Generator& g, auto* x, int64_t n) { randperm(g, x, n); };
constexpr auto waits = [](Generator& g, auto* x, int64_t n) { geometric(g, x, n, 0.1); };

struct Golden {
  DType dtype;
  int64_t n;
  std::function<uint64_t(Generator&)> hash_values;
  uint64_t values, state;
};

template <class T, class Fill>
Golden row(Fill fill, int64_t n, uint64_t values, uint64_t state) {
  const auto hash_values = [=](Generator& g) {
    const auto buffer = std::make_unique<T[]>(n);
    fill(g, buffer.get(), n);
    return hash_bytes(buffer.get(), n * sizeof(T));
  };
  return {dtype_of<T>, n, hash_values, values, state};
}

std::vector<Golden> golden_rows() {
  return {
      row<Half>(uniforms, 1, 0x08dc1707b57b2fe8, 0x1e5da775425bf496),
      row<Half>(uniforms, 17, 0xd096f51bfebf44d7, 0x6961f248e8a1d296),
      row<Half>(uniforms, 1000, 0x2f5561e8ba76e115, 0x4496d45a70dea06c),
      row<Half>(normals, 15, 0x5cb0d837cec4db38, 0x85a1d6582eeeff19),
      row<Half>(strided_normals, 33, 0x2c34ab33a0201034, 0x63633e617291f2a0),
      row<BFloat16>(uniforms, 1, 0x098d8707b6128ce4, 0x1e5da775425bf496),
      row<BFloat16>(uniforms, 17, 0x4d30879ca7e6f384, 0x6961f248e8a1d296),
      row<BFloat16>(uniforms, 1000, 0x2bf6456697f6d9a6, 0x4496d45a70dea06c),
      row<BFloat16>(normals, 15, 0x723ae435007a1ef9, 0x85a1d6582eeeff19),
      row<BFloat16>(strided_normals, 33, 0x0ddaf693a0018b48, 0x63633e617291f2a0),
      row<float>(uniforms, 1, 0xd6f59edcd3c924ec, 0x1e5da775425bf496),
      row<float>(uniforms, 17, 0x364f9867e8596470, 0x6961f248e8a1d296),
      row<float>(uniforms, 1000, 0xc452429d35e91e3b, 0x4496d45a70dea06c),
      row<float>(normals, 15, 0x253b65ebf9afacf3, 0x85a1d6582eeeff19),
      row<float>(strided_normals, 33, 0x6fb71b55e0ab4c0d, 0x63633e617291f2a0),
      row<double>(uniforms, 1, 0x9afb658cc95ede8a, 0xe1f3df5c0c8aa826),
      row<double>(uniforms, 17, 0x4f6a141dfa3dacae, 0x425b4a30fb18e566),
      row<double>(uniforms, 1000, 0x7314a03406342996, 0x16211d434241f7b8),
      row<double>(normals, 15, 0x7a6bdef0ab255414, 0x85a1d6582eeeff19),
      row<double>(strided_normals, 33, 0x405a6ce547e634e3, 0x63633e617291f2a0),
      row<bool>(coins, 100, 0x9e885ab20134f27c, 0x84cc0944f5896347),
      row<uint8_t>(coins, 100, 0x9e885ab20134f27c, 0x84cc0944f5896347),
      row<int32_t>(coins, 100, 0x3a55a9352fc99344, 0x84cc0944f5896347),
      row<float>(coins, 100, 0xf32f57b92ae97778, 0x84cc0944f5896347),
      row<BFloat16>(coins, 100, 0xb10e5aaf10592950, 0x84cc0944f5896347),
      row<bool>(integers, 100, 0x13dd709c2514c19e, 0x89190a7b3c524522),
      row<uint8_t>(integers, 100, 0x5850d890cbdcf4f6, 0x89190a7b3c524522),
      row<int8_t>(integers, 100, 0x2bba11693620ecf6, 0x89190a7b3c524522),
      row<int16_t>(integers, 100, 0x8b1190eefe668dce, 0x89190a7b3c524522),
      row<int32_t>(integers, 100, 0xa479eda3526edd45, 0x89190a7b3c524522),
      row<int64_t>(integers, 100, 0x665c0496c3c58de8, 0x84cc0944f5896347),
      row<Half>(integers, 100, 0x197edea415d3cfcb, 0x89190a7b3c524522),
      row<BFloat16>(integers, 100, 0x32292dce3ba5e54e, 0x89190a7b3c524522),
      row<float>(integers, 100, 0x3f450a06644e095b, 0x89190a7b3c524522),
      row<double>(integers, 100, 0xe27c79896cf7d70c, 0x84cc0944f5896347),
      row<int8_t>(small_range, 100, 0xca79ae298e7824f6, 0x89190a7b3c524522),
      row<int32_t>(small_range, 100, 0x1d615295e4886347, 0x89190a7b3c524522),
      row<Half>(small_range, 100, 0x57d1e372563ac9af, 0x89190a7b3c524522),
      row<float>(small_range, 100, 0xc8c6d3e1dcc1801a, 0x89190a7b3c524522),
      row<int32_t>(wide_range, 100, 0xa60bbd27417d2a2a, 0x84cc0944f5896347),
      row<int64_t>(wide_range, 100, 0x340cf15cd500046a, 0x84cc0944f5896347),
      row<uint32_t>(wide_range, 100, 0xa60bbd27417d2a2a, 0x84cc0944f5896347),
      row<int64_t>(full_range, 10, 0x7ccf0efa23d5a1be, 0x01e60de0ec556f82),
      row<float>(full_range, 10, 0xd06ed4072e8fdf0b, 0x01e60de0ec556f82),
      row<int64_t>(permutation, 1, 0xa8c7f832281a39c5, 0xd047731ef997bb41),
      row<int64_t>(permutation, 10, 0xd5a46c09b5961ba4, 0x1d5c054b4546a376),
      row<int64_t>(permutation, 1025, 0x4c4c3327d7f228fd, 0x8ce1a0ec88ce3d9c),
      row<int16_t>(permutation, 1, 0x08328807b4eb6fed, 0xd047731ef997bb41),
      row<int16_t>(permutation, 10, 0x53fbe4ef40c99dc4, 0x1d5c054b4546a376),
      row<int16_t>(permutation, 1025, 0x03143160e63f5eb5, 0x8ce1a0ec88ce3d9c),
      row<Half>(permutation, 1, 0x08328807b4eb6fed, 0xd047731ef997bb41),
      row<Half>(permutation, 10, 0xf191e924cb3b8b4b, 0x1d5c054b4546a376),
      row<Half>(permutation, 1025, 0x5d1469805abf74d3, 0x8ce1a0ec88ce3d9c),
      row<int32_t>(waits, 100, 0x8d4ad822f0f96a07, 0x84cc0944f5896347),
      row<int64_t>(waits, 100, 0x9dc343c9efeb5047, 0x84cc0944f5896347),
      row<float>(waits, 100, 0x56f2c2f56521b70b, 0x84cc0944f5896347),
  };
}

TEST(Random, ValuesAndStatesAreGolden) {
  const std::vector<Golden> rows = golden_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Golden& golden = rows[i];
    Generator g(20240607);
    EXPECT_EQ(golden.hash_values(g), golden.values)
        << "row " << i << ", " << name(golden.dtype) << ", n=" << golden.n;
    EXPECT_EQ(hash_state(g), golden.state) << "row " << i;
  }
}

TEST(Random, DefaultSeedStateIsGolden) { EXPECT_EQ(hash_state(Generator()), 8287452671559101325u); }

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& expected, double ulps) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], ulps * 0x1p-23 * std::max(1.0, std::fabs(expected[i]))) << i;
}

TEST(Random, NormalsOfAContiguousTensor) {
  Generator g(1);
  std::vector<float> z(3);
  uniform(g, z.data(), 3, 0, 1);
  std::vector<float> x(17);
  normal(g, x.data(), 17, 1, 2, true);
  expect_near(x,
              {-2.21896958, 2.73138475, 1.4888078, -0.325822711, 2.61461639, 1.87828314, 3.3424015,
               4.53485489, 0.809276223, 1.12231052, -0.235488892, -0.596139669, 0.736753583,
               -0.596879601, 1.67146111, 1.55066705, 4.43260527},
              8);
}

TEST(Random, ContinuousDistributions) {
  Generator g(1);
  std::vector<float> x(3);
  exponential(g, x.data(), 3, 2);
  expect_near(x, {0.0314982682, 0.127158791, 0.133451402}, 4);
  cauchy(g, x.data(), 3, 1, 2);
  expect_near(x, {-2.21590352, 1.35597515, -4.58581591}, 4);
  log_normal(g, x.data(), 3, 1, 2);
  expect_near(x, {0.129310742, 5.83204556, 0.348116815}, 4);
}

TEST(Random, GammaAndDirichlet) {
  Generator g(1);
  const std::vector<float> alpha = {0.5f, 3, 20};
  std::vector<float> x(3);
  standard_gamma(g, x.data(), alpha.data(), 3);
  expect_near(x, {1.14334178, 4.02648544, 23.7273808}, 4);
  dirichlet(g, x.data(), alpha.data(), 1, 3);
  expect_near(x, {0.017515447, 0.0686826557, 0.913801908}, 4);
}

TEST(Random, Counts) {
  Generator g(1);
  const std::vector<float> rate = {0.5f, 3, 20, 1000};
  std::vector<float> x(4);
  poisson(g, x.data(), rate.data(), 4);
  EXPECT_EQ(x, (std::vector<float>{0, 2, 21, 996}));
  const std::vector<float> trials = {5, 100, 100}, p = {0.3f, 0.4f, 0.9f};
  x.resize(3);
  binomial(g, x.data(), trials.data(), p.data(), 3);
  EXPECT_EQ(x, (std::vector<float>{2, 37, 91}));
  const float negative = -1;
  EXPECT_THROW(poisson(g, x.data(), &negative, 1), Error);
}

TEST(Random, Multinomial) {
  Generator g(1);
  const std::vector<float> weights = {1, 2, 3, 4, 4, 0, 0, 1};
  const Weights<float> w{weights.data(), 2, 4, 4, 1};
  std::vector<int64_t> x(10);
  multinomial_with_replacement(g, x.data(), w, 5);
  EXPECT_EQ(x, (std::vector<int64_t>{0, 1, 1, 1, 2, 0, 0, 0, 0, 0}));
  x.resize(4);
  multinomial_without_replacement(g, x.data(), w, 2);
  EXPECT_EQ(x, (std::vector<int64_t>{3, 1, 0, 3}));
  x.resize(2);
  multinomial_without_replacement(g, x.data(), w, 1);
  EXPECT_EQ(x, (std::vector<int64_t>{1, 3}));
}

TEST(Random, MultinomialRefusesBadWeights) {
  Generator g(1);
  int64_t x[3];
  for (const std::vector<float>& weights :
       std::vector<std::vector<float>>{{1, -1, 1}, {1, INFINITY, 1}, {1, NAN, 1}, {0, 0, 0}}) {
    const Weights<float> w{weights.data(), 1, 3, 3, 1};
    EXPECT_THROW(multinomial_with_replacement(g, x, w, 2), Error);
    EXPECT_THROW(multinomial_without_replacement(g, x, w, 2), Error);
  }
  const float one = 1;
  EXPECT_THROW(multinomial_without_replacement(g, x, Weights<float>{&one, 1, 1, 1, 1}, 2), Error);
}

TEST(Random, BulkEqualsSingleDraws) {
  Mt19937 bulk(7), single(7);
  std::vector<uint32_t> words(2000);
  for (const int64_t n : {1, 623, 1, 624, 700, 0, 51}) {
    bulk.fill(words.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(words[i], single.next());
  }
}

TEST(Random, StateRestoresTheStreamAndItsCachedNormal) {
  Generator g(3);
  float x[15], y[15];
  normal(g, x, 5, 0, 1, true);
  ASSERT_TRUE(g.next_double_normal);
  const Generator::State state = g.get_state();
  const auto copy = g.clone();
  normal(g, x, 15, 0, 1, true);
  Generator other(99);
  other.set_state(state);
  EXPECT_EQ(other.initial_seed(), 3u);
  normal(other, y, 15, 0, 1, true);
  EXPECT_TRUE(std::equal(x, x + 15, y));
  EXPECT_EQ(other.get_state(), g.get_state());
  normal(*copy, y, 15, 0, 1, true);
  EXPECT_TRUE(std::equal(x, x + 15, y));
}

TEST(Random, SeedingForgetsTheCachedNormal) {
  Generator g(3), fresh(4);
  float x;
  normal(g, &x, 1, 0, 1, true);
  g.manual_seed(4);
  EXPECT_EQ(g.get_state(), fresh.get_state());
  const uint64_t chosen = g.seed();
  EXPECT_EQ(g.initial_seed(), chosen);
}

TEST(Random, BadStatesAreRefused) {
  Generator g(3);
  const Generator::State good = g.get_state();
  Generator::State bad{};
  EXPECT_THROW(g.set_state(bad), Error);
  EXPECT_THROW(g.set_state(std::span(good).first(100)), Error);
  bad = good;
  bad[8] = 5;      // words left
  bad[16] = 0x70;  // next word: 624
  bad[17] = 0x02;
  EXPECT_THROW(g.set_state(bad), Error);
  EXPECT_EQ(g.get_state(), good);
}

TEST(Random, RangesRespectTheDtype) {
  EXPECT_EQ(random_range(DType::UInt8, 3, 256).range, 253u);
  EXPECT_EQ(random_range(DType::Int64, 5, std::nullopt).range, (uint64_t{1} << 63) - 5);
  EXPECT_TRUE(random_range(DType::Int64, INT64_MIN, std::nullopt).full);
  EXPECT_EQ(random_range(DType::Float16, 0, 65504).range, 65472u);
  EXPECT_TRUE(random_range(DType::Float16, 2049, 2060).inexact_from);
  EXPECT_FALSE(random_range(DType::Float32, 0, 1 << 24).inexact_last);
  EXPECT_THROW(random_range(DType::UInt8, -1, 5), Error);
  EXPECT_THROW(random_range(DType::Bool, 0, 3), Error);
  EXPECT_THROW(random_range(DType::Int32, 5, 5), Error);
  EXPECT_THROW(random_range(DType::Complex64, 0, 5), Error);
  EXPECT_THROW(random_range(DType::Int32, INT64_MIN, std::nullopt), Error);
}

TEST(Random, UniformNeverReachesItsEnd) {
  Generator g(1);
  std::vector<BFloat16> x(10000);
  uniform(g, x.data(), 10000, 0, 1);
  for (const BFloat16 v : x) ASSERT_LT(static_cast<float>(v), 1.0f);
}

TEST(Random, EmptyFillsDrawNothing) {
  Generator g(1);
  uniform<float>(g, nullptr, 0, 0, 1);
  normal<double>(g, nullptr, 0, 0, 1, true);
  randperm<int64_t>(g, nullptr, 0);
  bernoulli_scalar<bool>(g, nullptr, 0, 0.5);
  EXPECT_EQ(g.get_state(), Generator(1).get_state());
}

TEST(Random, BernoulliRefusesWhatIsNoProbability) {
  Generator g(1);
  bool x;
  const float p[] = {1.5f, NAN, -0.1f};
  for (const float& bad : p) {
    EXPECT_THROW(bernoulli_each(g, &x, &bad, 1), Error);
    EXPECT_THROW(bernoulli_scalar(g, &x, 1, bad), Error);
  }
}

TEST(Random, FillsFromManyThreadsDoNotTear) {
  Generator g(1), serial(1);
  constexpr int64_t n = 1000;
  std::vector<std::vector<float>> parts(4, std::vector<float>(n));
  std::vector<std::thread> threads;
  for (auto& part : parts) threads.emplace_back([&] { uniform(g, part.data(), n, 0, 1); });
  for (std::thread& t : threads) t.join();
  std::vector<float> all(4 * n);
  uniform(serial, all.data(), 4 * n, 0, 1);
  for (const auto& part : parts)
    EXPECT_NE(std::search(all.begin(), all.end(), part.begin(), part.end()), all.end());
  EXPECT_EQ(g.get_state(), serial.get_state());
}

TEST(Random, DefaultGeneratorIsOne) { EXPECT_EQ(&default_generator(), &default_generator()); }

}  // namespace
}  // namespace facula::dist
