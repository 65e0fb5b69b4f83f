// The memory of the toy devices: host memory behind addresses that the host cannot read.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace toy {

inline constexpr int devices = 2;
inline constexpr size_t capacity = size_t{256} << 20;  // of each device

// Device addresses are host addresses plus an offset that no host address has, so that a read of
// device memory by the host's code is a fault and not a passing test.
inline constexpr uintptr_t offset = uintptr_t{1} << 62;

template <class T>
T* on_device(T* p) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) + offset);
}
template <class T>
T* on_host(T* p) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) - offset);
}

int allocate(int index, size_t bytes, void** data);
int release(int index, void* data, size_t bytes);
int memory_info(int index, size_t* free, size_t* total);
int allocate_pinned(size_t bytes, void** data);
int release_pinned(void* data);

extern std::atomic<int64_t> bytes_in_use[devices];

}  // namespace toy
