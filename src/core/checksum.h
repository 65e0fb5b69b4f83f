// CRC-32 as in zip archives (polynomial 0x04C11DB7, reflected), for the records of checkpoints.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula {

// Continues a checksum: `before` is that of the preceding bytes, or 0.
uint32_t crc32(const void* data, size_t size, uint32_t before = 0);

// The same with a table alone, for processors without PCLMUL.
uint32_t crc32_by_table(const void* data, size_t size, uint32_t before = 0);

}  // namespace facula
