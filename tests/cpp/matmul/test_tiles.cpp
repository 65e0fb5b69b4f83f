// The emulated tile instructions against plain sums, and against the processor's where it has them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "kernels/cpu/simd/amx.h"

namespace facula::cpu {
namespace {

struct Operands {
  alignas(64) uint8_t a[16][64] = {}, b[16][64] = {};
  alignas(64) uint32_t sums[16][16] = {};
};

struct Shape {
  int64_t rows, columns, groups;  // groups of 32 bits along k
};
const Shape shapes_of_products[] = {{16, 16, 16}, {1, 1, 1}, {3, 16, 5}, {16, 7, 2}, {9, 4, 16}};

TileShapes tile_shapes(const Shape& s) {
  TileShapes shapes;
  shapes.set(0, s.rows, 4 * s.columns);
  shapes.set(1, s.rows, 4 * s.groups);
  shapes.set(2, s.groups, 4 * s.columns);
  return shapes;
}

enum class Product { bfloat16, bytes };

template <class Tiles>
void multiply(const Shape& s, Product kind, Operands& x) {
  Tiles::configure(tile_shapes(s));
  Tiles::template load<0>(x.sums, 64);
  Tiles::template load<1>(x.a, 64);
  Tiles::template load<2>(x.b, 64);
  if (kind == Product::bytes)
    Tiles::template multiply_bytes<0, 1, 2>();
  else
    Tiles::template multiply_bfloat16<0, 1, 2>();
  Tiles::template store<0>(x.sums, 64);
  Tiles::release();
}

void set_number(uint8_t* bytes, int64_t index, float value) {
  const BFloat16 narrow(value);
  std::memcpy(bytes + 2 * index, &narrow, 2);
}
float number(const uint8_t* bytes, int64_t index) {
  BFloat16 narrow;
  std::memcpy(&narrow, bytes + 2 * index, 2);
  return static_cast<float>(narrow);
}
float as_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }

TEST(Tiles, ProductsOfBFloat16AreAddedToTheSums) {
  std::mt19937 random{3};
  for (const Shape& s : shapes_of_products) {
    Operands x;
    for (int64_t i = 0; i < 16 * 32; ++i) {
      set_number(x.a[0], i, static_cast<float>(random() % 17) - 8);
      set_number(x.b[0], i, static_cast<float>(random() % 17) - 8);
    }
    for (auto& row : x.sums)
      for (uint32_t& sum : row) sum = __builtin_bit_cast(uint32_t, 2.5f);
    multiply<EmulatedTiles>(s, Product::bfloat16, x);
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t j = 0; j < 16; ++j) {
        float want = 2.5f;  // outside of the tile's shape, where nothing is written
        if (i < s.rows && j < s.columns)
          for (int64_t k = 0; k < 2 * s.groups; ++k)
            want += number(x.a[i], k) * number(x.b[k / 2], 2 * j + k % 2);
        EXPECT_EQ(as_float(x.sums[i][j]), want) << i << ' ' << j;
      }
  }
}

TEST(Tiles, ProductsOfBytesAreUnsignedBySignedAndWrapAround) {
  std::mt19937 random{5};
  for (const Shape& s : shapes_of_products) {
    Operands x;
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t j = 0; j < 64; ++j) {
        x.a[i][j] = static_cast<uint8_t>(random());
        x.b[i][j] = static_cast<uint8_t>(random());
      }
    constexpr uint32_t before = 0x7fffff00u;
    for (auto& row : x.sums)
      for (uint32_t& sum : row) sum = before;
    multiply<EmulatedTiles>(s, Product::bytes, x);
    for (int64_t i = 0; i < s.rows; ++i)
      for (int64_t j = 0; j < s.columns; ++j) {
        int64_t want = before;
        for (int64_t k = 0; k < 4 * s.groups; ++k)
          want += int64_t{x.a[i][k]} * static_cast<int8_t>(x.b[k / 4][4 * j + k % 4]);
        EXPECT_EQ(x.sums[i][j], static_cast<uint32_t>(want)) << i << ' ' << j;
      }
  }
}

TEST(Tiles, EvenAndOddTermsAreRoundedApart) {
  Operands x;
  // Even terms: 1 and 2^-24, which is lost; odd ones: 2^-24, which is not until the end.
  set_number(x.a[0], 0, 1);
  set_number(x.a[0], 1, 0x1p-24f);
  set_number(x.a[0], 2, 0x1p-24f);
  set_number(x.a[0], 3, 0x1p-23f);
  for (int64_t k = 0; k < 2; ++k)
    for (int64_t half = 0; half < 2; ++half) set_number(x.b[k], half, 1);
  multiply<EmulatedTiles>({1, 1, 2}, Product::bfloat16, x);
  EXPECT_EQ(as_float(x.sums[0][0]), 1.0f + 0x1.8p-23f);
}

TEST(Tiles, SubnormalNumbersCountAsZeros) {
  for (const auto& [left, right] :
       {std::pair{0x1p-127f, 1.0f}, {1.0f, 0x1p-127f}, {0x1p-64f, 0x1p-64f}}) {
    Operands x;
    set_number(x.a[0], 0, left);
    set_number(x.b[0], 0, right);
    multiply<EmulatedTiles>({1, 1, 1}, Product::bfloat16, x);
    EXPECT_EQ(as_float(x.sums[0][0]), 0.0f) << left;
  }
}

TEST(Tiles, ShapesThatDoNotFitAreRefused) {
  Operands x;
  TileShapes shapes = tile_shapes({4, 4, 4});
  shapes.set(2, 3, 16);
  EmulatedTiles::configure(shapes);
  EXPECT_THROW((EmulatedTiles::multiply_bytes<0, 1, 2>()), Error);
  EXPECT_THROW((EmulatedTiles::multiply_bfloat16<0, 1, 2>()), Error);
  EmulatedTiles::release();
}

#if defined(__x86_64__)
TEST(Tiles, TheProcessorGivesTheSameBits) {
  const TileWays ways = tile_ways();
  if (ways.bfloat16 != TileWay::hardware || ways.bytes != TileWay::hardware)
    GTEST_SKIP() << "this processor has no tiles (AMX) of bfloat16 and bytes";
  std::mt19937 random{11};
  for (const Shape& s : shapes_of_products)
    for (const Product kind : {Product::bfloat16, Product::bytes}) {
      Operands x;
      for (int64_t i = 0; i < 16 * 32; ++i) {
        set_number(x.a[0], i, std::ldexp(static_cast<float>(random() % 255), random() % 20 - 10));
        set_number(x.b[0], i, std::ldexp(static_cast<float>(random() % 255), random() % 20 - 10));
      }
      Operands same = x;
      multiply<EmulatedTiles>(s, kind, x);
      multiply<HardwareTiles>(s, kind, same);
      EXPECT_EQ(std::memcmp(x.sums, same.sums, sizeof x.sums), 0);
    }
}
#endif

}  // namespace
}  // namespace facula::cpu
