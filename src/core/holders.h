// Which large blocks are in use and what they hold: told by errors for want of memory.
#pragma once
#include <cstddef>
#include <string>

#include "core/dtype.h"
#include "core/small_vector.h"

namespace facula {

// Blocks of fewer bytes are not kept track of.
inline constexpr size_t holder_bytes = size_t{64} << 10;

// For the allocator: a block comes into use, or goes out of it.
void note_block(const void* p, size_t bytes) noexcept;
void forget_block(const void* p) noexcept;
// For tensors: what the block was allocated for.
void describe_block(const void* p, DType dtype, IntSpan sizes) noexcept;

// Where the program is; empty when that cannot be told.
using AllocationSite = std::string (*)();
// From now on blocks remember where they came from; null turns that off.
void set_allocation_site(AllocationSite site);
bool tracks_allocations();

// A list of the largest blocks in use, a line for each; empty when there are none.
std::string largest_holders();

// Around a fork.
void lock_holders();
void unlock_holders();

}  // namespace facula
