// An allocator for tests, which `FACULA_FENCED_ALLOCATOR=1` turns on in builds with FACULA_FENCED.
// Each block lies between guard pages, freed blocks are unmapped, and new memory is filled with a
// pattern: two runs with different patterns give different results where uninitialised memory is
// read.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(FACULA_FENCED)
#define FACULA_FENCED 0
#endif

namespace facula {

// Whether the allocator is on; read from the environment at the first call.
bool fences_on() noexcept;

// As cpu_allocate and cpu_free, for bytes > 0; null when the system has no memory. Freeing a block
// aborts the process if memory beside it was overwritten.
void* fenced_allocate(size_t bytes) noexcept;
void fenced_free(void* p, size_t bytes) noexcept;

// Sets the byte that new memory is filled with, also that of malloc; 0x7f at first.
void set_fence_fill(uint8_t byte) noexcept;

}  // namespace facula
