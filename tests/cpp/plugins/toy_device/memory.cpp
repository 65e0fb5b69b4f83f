#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace toy {

std::atomic<int64_t> bytes_in_use[devices] = {};

// Fresh memory holds a pattern, and released memory is taken out of the address space: work that
// comes too late faults.
int allocate(int index, size_t bytes, void** data) {
  *data = nullptr;
  if (bytes_in_use[index] + static_cast<int64_t>(bytes) > static_cast<int64_t>(capacity)) return 0;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return 0;
  std::memset(p, 0xA5, bytes);
  bytes_in_use[index] += static_cast<int64_t>(bytes);
  *data = on_device(p);
  return 0;
}

int release(int index, void* data, size_t bytes) {
  bytes_in_use[index] -= static_cast<int64_t>(bytes);
  munmap(on_host(data), bytes);
  return 0;
}

int memory_info(int index, size_t* free, size_t* total) {
  *total = capacity;
  *free = capacity - static_cast<size_t>(bytes_in_use[index]);
  return 0;
}

int allocate_pinned(size_t bytes, void** data) {
  *data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  return 0;
}

int release_pinned(void* data) {
  std::free(data);
  return 0;
}

}  // namespace toy
