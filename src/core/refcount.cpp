#include "core/refcount.h"

namespace facula {

constinit std::atomic<const PythonHooks*> python_hooks{nullptr};

void ObjectCounted::tell_shared() const {
  python_hooks.load(std::memory_order_acquire)->shared(*this);
}

bool ObjectCounted::release_watched() const {
  uint32_t n = count_.load(std::memory_order_acquire);
  // Only the binding may go from 2 to 1, under the GIL. Until then this reference keeps the tensor
  // and its Python object alive.
  while (n != (watched | 2))
    if (count_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      return (n & ~watched) == 1;
  return python_hooks.load(std::memory_order_acquire)->unshare(*this);
}

bool ObjectCounted::watch_if_shared() const {
  uint32_t n = count_.load(std::memory_order_acquire);
  while ((n & ~watched) > 1)
    if (count_.compare_exchange_weak(n, n | watched, std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      return true;
  return false;
}

ObjectCounted::Left ObjectCounted::release_shared(bool watch_on) const {
  uint32_t n = count_.load(std::memory_order_acquire);
  for (;;) {
    const bool last = n == (watched | 2);
    const uint32_t left = last && !watch_on ? 1 : n - 1;
    if (!count_.compare_exchange_weak(n, left, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    if (last) return Left::Object;
    return (left & ~watched) == 0 ? Left::Nobody : Left::Others;
  }
}

}  // namespace facula
