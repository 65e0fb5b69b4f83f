// CRC-32 as zip archives have it (polynomial 0x04C11DB7, reflected): the checksum of files'
// records.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula {

// The checksum of bytes that follow others, whose checksum is `before` (0 where there are none).
uint32_t crc32(const void* data, size_t size, uint32_t before = 0);

// The same without instructions that not every processor has.
uint32_t crc32_by_table(const void* data, size_t size, uint32_t before = 0);

}  // namespace facula
