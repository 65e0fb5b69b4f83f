// Remembers the large blocks in use and their tensors, so that out-of-memory errors can list them.
#pragma once
#include <cstddef>
#include <string>

#include "core/dtype.h"
#include "core/small_vector.h"

namespace facula {

// Smaller blocks are not tracked.
inline constexpr size_t holder_bytes = size_t{64} << 10;

// Called by the allocator when a block is allocated and when it is freed.
void note_block(const void* p, size_t bytes) noexcept;
void forget_block(const void* p) noexcept;
// Says what tensor the block was allocated for.
void describe_block(const void* p, DType dtype, IntSpan sizes) noexcept;

// Returns the user's source line that is running; empty if it is unknown.
using AllocationSite = std::string (*)();
// Records the allocation site of each new block with `site`; null turns that off.
void set_allocation_site(AllocationSite site);
bool tracks_allocations();

// A list of the largest blocks in use, a line for each; empty when there are none.
std::string largest_holders();

// Around a fork.
void lock_holders();
void unlock_holders();

}  // namespace facula
