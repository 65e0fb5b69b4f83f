// Host memory for tests, with `FACULA_FENCED_ALLOCATOR=1` in builds that have it (FACULA_FENCED):
// each block lies between pages that nobody may touch, one that was freed cannot be touched either,
// and new memory holds a pattern, so that runs with different patterns show who reads what nobody
// set.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(FACULA_FENCED)
#define FACULA_FENCED 0
#endif

namespace facula {

// Whether blocks come from here: settled by the environment when first asked.
bool fences_on() noexcept;

// As cpu_allocate and cpu_free, for bytes > 0; null where the system has no memory. A block whose
// surroundings were written to ends the process when it is freed.
void* fenced_allocate(size_t bytes) noexcept;
void fenced_free(void* p, size_t bytes) noexcept;

// The byte that new memory is filled with; 0x7f at first. What malloc gives is filled as well.
void set_fence_fill(uint8_t byte) noexcept;

}  // namespace facula
