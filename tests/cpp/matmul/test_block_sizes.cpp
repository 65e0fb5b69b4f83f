// Which block sizes a processor gets.
#include <gtest/gtest.h>

#include "kernels/cpu/simd/block_sizes.h"

namespace facula::cpu {
namespace {

constexpr int64_t kilo = 1 << 10, mega = 1 << 20;

TEST(BlockSizes, AKnownFamilyGetsWhatWasMeasured) {
  const Processor zen5{"AuthenticAMD", 26};
  const BlockSizes small = block_sizes_of(zen5, {32 * kilo, 256 * kilo, 4 * mega}),
                   large = block_sizes_of(zen5, {48 * kilo, 2 * mega, 32 * mega});
  EXPECT_EQ(small.product_rows, large.product_rows);
  EXPECT_EQ(small.shared_tiles, large.shared_tiles);
}

TEST(BlockSizes, OthersGrowWithTheSecondCache) {
  const Processor unknown{"Somebody", 26};
  const BlockSizes one = block_sizes_of(unknown, {48 * kilo, 1 * mega, 32 * mega}),
                   two = block_sizes_of(unknown, {48 * kilo, 2 * mega, 32 * mega});
  EXPECT_EQ(two.product_rows, 2 * one.product_rows);
  EXPECT_EQ(two.product_columns, 2 * one.product_columns);
  EXPECT_EQ(two.own_tiles, 2 * one.own_tiles);
  EXPECT_EQ(two.recurrent_weights, 2 * one.recurrent_weights);
}

TEST(BlockSizes, ReductionsAskForMemoryWhereTheProcessorDoesNot) {
  EXPECT_EQ(block_sizes_of({"AuthenticAMD", 25}, {}).prefetch_distance, 0);
  for (const Processor& other : {Processor{"AuthenticAMD", 26}, Processor{"GenuineIntel", 6}})
    EXPECT_GE(block_sizes_of(other, {}).prefetch_distance, 4 * kilo);
}

TEST(BlockSizes, IntelReadsMoreRowsInPlace) {
  EXPECT_EQ(block_sizes_of({"GenuineIntel", 6}, {}).unpacked_rows, 128);
  EXPECT_EQ(block_sizes_of({"Somebody", 6}, {}).unpacked_rows, 28);
}

TEST(BlockSizes, StayUsefulForAnyCaches) {
  for (const CacheSizes& caches : {CacheSizes{}, CacheSizes{1, 1, 1}, CacheSizes{0, 0, 0},
                                   CacheSizes{mega, 1024 * mega, 1024 * mega}}) {
    const BlockSizes sizes = block_sizes_of({}, caches);
    EXPECT_GE(sizes.product_rows, 14);
    EXPECT_GE(sizes.product_columns, 64);
    EXPECT_GE(sizes.unpacked_product, 8 * kilo);
    EXPECT_GE(sizes.own_tiles, 32 * kilo);
    EXPECT_GE(sizes.shared_tiles, sizes.own_tiles);
    EXPECT_LE(sizes.shared_tiles, 8 * mega);
    EXPECT_LE(sizes.recurrent_weights, 16 * mega);
  }
}

}  // namespace
}  // namespace facula::cpu
