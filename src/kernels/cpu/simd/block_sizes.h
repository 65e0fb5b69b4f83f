// How much of an operand kernels work on at a time, by the caches of this processor. These sizes
// say how work is cut and never how sums are ordered: results have the same bits with any of them.
#pragma once
#include <cstdint>
#include <string_view>

namespace facula::cpu {

// Bytes that one core has of each cache; the third is shared. What the system does not tell is as
// in a common processor.
struct CacheSizes {
  int64_t first = 32 << 10, second = 512 << 10, third = 8 << 20;
};

struct BlockSizes {
  int64_t product_rows;       // packed rows of A, of 1 to 2 KiB, that one job multiplies at most
  int64_t product_columns;    // packed columns of B, of about 1 KiB, that all jobs share
  int64_t unpacked_product;   // bytes of B up to which rows that are far apart are read in place
  int64_t unpacked_rows;      // rows of A up to which any B is read in place
  int64_t own_tiles;          // bytes of Winograd's tiles that one thread works on
  int64_t shared_tiles;       // and those that all threads do
  int64_t recurrent_weights;  // bytes of weights that each thread reads for itself
  int64_t tile_rows;          // rows of a tile of sums in registers; the fewer, the wider
  int64_t prefetch_distance;  // bytes ahead of use at which reductions ask for memory; 0: never
};

// The maker's name as cpuid gives it, and the number of the processor's family; empty and 0 where
// there is no such thing.
struct Processor {
  std::string_view maker;
  int family = 0;
};

// What was measured for this family, else what the model says of its caches.
BlockSizes block_sizes_of(const Processor& processor, const CacheSizes& caches);

// Those of this machine, or of the caches that FACULA_CACHES names; found once.
const BlockSizes& block_sizes();

}  // namespace facula::cpu
