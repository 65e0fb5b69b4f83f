// Copies between memory of tensors and that of an engine.
#pragma once
#include <cstddef>
#include <cstring>

namespace facula::distributed {

// As memcpy(), but nothing may have no memory: an empty tensor's address is null.
inline void copy_bytes(void* to, const void* from, size_t n) {
  if (n) std::memcpy(to, from, n);
}

}  // namespace facula::distributed
