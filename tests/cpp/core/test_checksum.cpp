#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "core/checksum.h"

namespace facula {
namespace {

TEST(Checksum, OfKnownTexts) {
  const std::string_view digits = "123456789", letter = "a";
  EXPECT_EQ(crc32(digits.data(), digits.size()), 0xCBF43926U);
  EXPECT_EQ(crc32(letter.data(), letter.size()), 0xE8B7BE43U);
  EXPECT_EQ(crc32(nullptr, 0), 0U);
}

TEST(Checksum, FoldingGivesWhatTablesGive) {
  std::vector<uint8_t> bytes(1000);
  uint32_t state = 1;
  for (uint8_t& b : bytes) b = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  for (size_t size = 0; size < 900; ++size) {
    const uint8_t* p = bytes.data() + size % 7;
    ASSERT_EQ(crc32(p, size, 77), crc32_by_table(p, size, 77)) << size;
  }
}

TEST(Checksum, GoesOnWhereTheFirstPartEnded) {
  const std::vector<uint8_t> bytes(500, 3);
  const uint32_t first = crc32(bytes.data(), 123);
  EXPECT_EQ(crc32(bytes.data() + 123, 377, first), crc32(bytes.data(), 500));
}

}  // namespace
}  // namespace facula
