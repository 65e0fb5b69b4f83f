// Storage: a block of bytes on a device that tensors share.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/device.h"
#include "core/refcount.h"

namespace facula {

// How memory that facula did not allocate is given back.
using ExternalDeleter = void (*)(void* context);

class Storage : public ObjectCounted {
 public:
  // Memory of `bytes` from the device's allocator; on meta, a size without memory.
  static Ref<Storage> make(Device device, size_t bytes);
  // Memory owned elsewhere (NumPy, DLPack, mmap): `deleter(context)` runs when the storage dies.
  static Ref<Storage> external(Device device, void* data, size_t bytes, void* context,
                               ExternalDeleter deleter);
  ~Storage();

  Device device() const { return device_; }
  size_t nbytes() const { return nbytes_; }
  // The memory; null when there are no bytes. Raises RuntimeError where there is none by nature.
  void* data() const {
    if (!has_memory_) [[unlikely]]
      no_memory();
    return data_;
  }
  bool has_memory() const { return has_memory_; }
  bool resizable() const { return exports_.load(std::memory_order_relaxed) == 0; }
  // Somebody outside (an array, a buffer) gets the address, or gives it up: until then the memory
  // stays where it is. Whoever cannot tell when it is given up does not call end_export().
  void begin_export() { exports_.fetch_add(1, std::memory_order_relaxed); }
  void end_export() { exports_.fetch_sub(1, std::memory_order_relaxed); }
  // Changes the size, keeping the leading bytes; raises RuntimeError where it is not resizable().
  // Tensors may be larger than what is left: a smaller block stays where it is, and of an empty one
  // nothing can be read. Where calls may be reading, the caller has a TensorChange.
  void resize(size_t bytes);

  // Takes external memory in place of its own. What it had goes into the storage that is returned,
  // which is null where it lay in one block with the header, and then is not given back.
  Ref<Storage> exchange_memory(void* data, void* context, ExternalDeleter deleter);
  // The context of external memory that `deleter` gives back; null for other memory.
  void* context_of(ExternalDeleter deleter) const {
    return deleter_ == deleter ? context_ : nullptr;
  }
  // Whether somebody outside has been given the address.
  bool address_is_known() const {
    return exports_.load(std::memory_order_relaxed) > (deleter_ ? 1U : 0U);
  }

 private:
  Storage(Device d, size_t n) : device_(d), nbytes_(n), capacity_(n) {}
  friend void destroy(Storage* s);
  static Storage* place(Device device, size_t bytes, size_t extra);
  [[noreturn]] void no_memory() const;
  void release_memory();
  void reallocate(size_t bytes);

  Device device_;
  bool has_memory_ = true;
  bool emptied_ = false;  // by resize(0), under tensors that may have elements
  bool inline_ = false;   // data_ lies behind this header, in one block with it
  uint32_t block_bytes_ = 0;
  std::atomic<uint32_t> exports_{0};  // external memory counts as one
  size_t nbytes_;
  void* data_ = nullptr;
  union {
    void* context_;    // of external memory
    size_t capacity_;  // of our own: the most bytes that there ever were
  };
  ExternalDeleter deleter_ = nullptr;
};

void destroy(Storage* s);

}  // namespace facula
