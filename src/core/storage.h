// Storage: a block of bytes on a device that tensors share.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/device.h"
#include "core/pending.h"
#include "core/refcount.h"

namespace facula {

// Frees memory that facula did not allocate.
using ExternalDeleter = void (*)(void* context);

class Storage : public ObjectCounted {
 public:
  // A storage with memory from the device's allocator; on meta it has a size but no memory.
  static Ref<Storage> make(Device device, size_t bytes);
  // Memory owned elsewhere (NumPy, DLPack, mmap): `deleter(context)` runs when the storage dies.
  static Ref<Storage> external(Device device, void* data, size_t bytes, void* context,
                               ExternalDeleter deleter);
  // A storage of the CPU whose contents are computed later (core/pending.h): whoever asks for its
  // memory before, has them computed. Large ones have no memory until settle().
  static Ref<Storage> pending(size_t bytes);
  ~Storage();

  Device device() const { return device_; }
  size_t nbytes() const { return nbytes_; }
  // The memory; null for 0 bytes. RuntimeError for a storage that has no memory, as on meta.
  void* data() const {
    if (!has_memory_.load(std::memory_order_acquire)) [[unlikely]]
      demand_memory();
    return data_;
  }
  bool has_memory() const { return has_memory_.load(std::memory_order_acquire) || pending_; }

  // Whether its contents, or changes of them, are still to be computed.
  bool is_pending() const { return pending_; }
  // Says that changes of its contents are still to be made.
  void set_pending() {
    pending_ = true;
    has_memory_.store(false, std::memory_order_release);
  }
  // Gives a pending storage the memory that it lacks; only those who compute it reach it yet.
  void allocate_pending();
  // Ends that state: everybody may read it.
  void settle() {
    pending_ = false;
    has_memory_.store(true, std::memory_order_release);
  }
  // Whether others may read or write the memory without asking: NumPy, a file, another process.
  bool is_foreign() const { return deleter_ || !resizable(); }
  bool resizable() const { return exports_.load(std::memory_order_relaxed) == 0; }
  // Counts users outside of facula that have the address, such as NumPy arrays: while there are
  // any, the memory must not move. A user that cannot say when it is done never calls end_export().
  void begin_export() {
    finish_pending_work();
    exports_.fetch_add(1, std::memory_order_relaxed);
  }
  void end_export() { exports_.fetch_sub(1, std::memory_order_relaxed); }
  // Changes the size and keeps the leading bytes; RuntimeError if it is not resizable(). Tensors
  // over it keep their sizes: shrinking leaves the block in place so that they stay readable, and
  // with 0 bytes reading raises. The caller holds a TensorChange where other threads may be
  // reading.
  void resize(size_t bytes);

  // Replaces its memory by external memory and returns a storage with the old memory. Returns null,
  // and keeps the old memory unused, if that lies in one block with this header.
  Ref<Storage> exchange_memory(void* data, void* context, ExternalDeleter deleter);
  // The context of external memory with this deleter; null for any other memory.
  void* context_of(ExternalDeleter deleter) const {
    return deleter_ == deleter ? context_ : nullptr;
  }
  // Whether an export (begin_export) is in progress.
  bool address_is_known() const {
    return exports_.load(std::memory_order_relaxed) > (deleter_ ? 1U : 0U);
  }

 private:
  Storage(Device d, size_t n) : device_(d), nbytes_(n), capacity_(n) {}
  friend void destroy(Storage* s);
  static Storage* place(Device device, size_t bytes, size_t extra);
  void demand_memory() const;
  void release_memory();
  void reallocate(size_t bytes);

  Device device_;
  std::atomic<bool> has_memory_{true};
  bool pending_ = false;
  bool emptied_ = false;  // by resize(0), while tensors over it may still have elements
  bool inline_ = false;   // data_ lies behind this header, in one block with it
  uint32_t block_bytes_ = 0;
  std::atomic<uint32_t> exports_{0};  // external memory counts as one export
  size_t nbytes_;
  void* data_ = nullptr;
  union {
    void* context_;    // of external memory
    size_t capacity_;  // of our own memory: the largest size it has had
  };
  ExternalDeleter deleter_ = nullptr;
};

void destroy(Storage* s);

}  // namespace facula
