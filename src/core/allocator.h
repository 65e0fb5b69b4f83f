// Host memory for tensors: small blocks from free lists of the thread, large ones kept for reuse.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula {

inline constexpr size_t cpu_alignment = 64;

// `bytes` of uninitialised memory, aligned to 64; null for 0 bytes and only then.
// Throws RuntimeError when the memory cannot be had.
void* cpu_allocate(size_t bytes);

// Gives a block back, from any thread; `bytes` is what it was allocated with. Null is allowed.
void cpu_free(void* p, size_t bytes) noexcept;

// Returns unused memory to the system: all that is cached, except other threads' free lists.
void cpu_empty_cache();

// How many bytes of large blocks are kept for reuse; the least recently used are freed first.
// The default is a quarter of the memory that the process may use.
void set_cpu_memory_cap(size_t bytes);
size_t cpu_memory_cap();

struct MemoryStats {
  int64_t allocated = 0;       // bytes in use, block sizes rounded up
  int64_t peak_allocated = 0;  // since start or reset; short peaks of several threads may be missed
  int64_t reserved = 0;        // bytes from the system: in use, cached, or not yet cut into blocks
  int64_t peak_reserved = 0;
  int64_t cached = 0;       // bytes of large blocks that wait for reuse
  int64_t allocations = 0;  // calls so far
  int64_t frees = 0;
  int64_t system_allocations = 0;  // requests to the operating system so far
};

MemoryStats cpu_memory_stats();
void cpu_reset_peak_memory_stats();

}  // namespace facula
