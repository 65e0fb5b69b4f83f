#include "core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/allocator.h"
#include "core/debug.h"
#include "core/error.h"
#include "core/pending.h"
#include "core/stream.h"

namespace facula {

namespace {

// Small data lies in one block with the Storage, which saves an allocation.
constexpr size_t header_bytes = (sizeof(Storage) + 63) / 64 * 64;
constexpr size_t most_inline_bytes = 256;

}  // namespace

Storage* Storage::place(Device device, size_t bytes, size_t extra) {
  const size_t block = header_bytes + extra;
  auto* s = new (cpu_allocate(block)) Storage(device, bytes);
  s->block_bytes_ = static_cast<uint32_t>(block);
  return s;
}

Ref<Storage> Storage::make(Device device, size_t bytes) {
  if (debug::prints(debug::Level::Memory)) [[unlikely]]
    debug::print(debug::Level::Memory, concat("allocate ", bytes, " bytes on ", str(device)));
  if (device.is_cpu() && bytes <= most_inline_bytes && bytes > 0) {
    Storage* s = place(device, bytes, bytes);
    s->inline_ = true;
    s->data_ = reinterpret_cast<char*>(s) + header_bytes;
    return Ref<Storage>::take(s);
  }
  device = with_index(device);
  Ref<Storage> s = Ref<Storage>::take(place(device, bytes, 0));
  if (device.is_meta())
    s->has_memory_ = false;
  else if (bytes)
    s->data_ = device_allocate(device, bytes);
  return s;
}

Ref<Storage> Storage::pending(size_t bytes) {
  const bool small = bytes <= most_inline_bytes && bytes > 0;
  const Device cpu;
  Storage* s = place(cpu, bytes, small ? bytes : 0);
  s->inline_ = small;
  s->set_pending();
  return Ref<Storage>::take(s);
}

void Storage::allocate_pending() {
  if (data_ || !nbytes_) return;
  if (debug::prints(debug::Level::Memory)) [[unlikely]]
    debug::print(debug::Level::Memory, concat("allocate ", nbytes_, " pending bytes"));
  data_ =
      inline_ ? reinterpret_cast<char*>(this) + header_bytes : device_allocate(device_, nbytes_);
}

Ref<Storage> Storage::external(Device device, void* data, size_t bytes, void* context,
                               ExternalDeleter deleter) {
  Storage* s = place(device, bytes, 0);
  s->data_ = data;
  s->context_ = context;
  s->deleter_ = deleter;
  s->begin_export();
  return Ref<Storage>::take(s);
}

void Storage::release_memory() {
  if (debug::prints(debug::Level::Memory)) [[unlikely]]
    debug::print(debug::Level::Memory, concat("free ", nbytes_, " bytes on ", str(device_)));
  if (deleter_)
    deleter_(context_);
  else if (data_ && !inline_)
    device_release(device_, data_, capacity_);
  data_ = nullptr;
  inline_ = false;
}

Storage::~Storage() { release_memory(); }

Ref<Storage> Storage::exchange_memory(void* data, void* context, ExternalDeleter deleter) {
  if (pending_) demand_memory();
  Ref<Storage> before;
  if (data_ && !inline_) {
    before = make(device_, 0);
    before->data_ = data_;
    before->deleter_ = deleter_;
    if (deleter_)
      before->context_ = context_;
    else
      before->capacity_ = capacity_;
  }
  if (!deleter_) begin_export();  // external memory counts as an export by itself
  data_ = data;
  context_ = context;
  deleter_ = deleter;
  inline_ = emptied_ = false;
  has_memory_ = true;
  return before;
}

void Storage::resize(size_t bytes) {
  check(resizable(), "Trying to resize storage that is not resizable");
  if (pending_) demand_memory();
  if (!has_memory_ && !emptied_) {
    nbytes_ = bytes;
    return;
  }
  if (bytes == 0) {
    emptied_ = emptied_ || capacity_ > 0;
    has_memory_ = !emptied_;
    release_memory();
  } else if (emptied_ || bytes > capacity_) {
    reallocate(bytes);
  }
  nbytes_ = bytes;
}

void Storage::reallocate(size_t bytes) {
  const size_t room = std::max(bytes, capacity_), kept = emptied_ ? 0 : nbytes_;
  void* fresh = device_allocate(device_, room);
  if (kept && device_.is_cpu())
    std::memcpy(fresh, data_, kept);
  else if (kept)
    copy_on_device(current_stream(device_), fresh, data_, kept);
  release_memory();
  data_ = fresh;
  capacity_ = room;
  emptied_ = false;
  has_memory_ = true;
}

void Storage::demand_memory() const {
  if (pending_) {
    const bool computing = computes_pending();
    if (computing && (data_ || !nbytes_)) return;
    if (!computing) compute_pending(*this);
    if (has_memory_) return;
    throw Error(ErrorKind::Runtime,
                "the contents of this tensor were never computed: the compiled function raised "
                "before");
  }
  check(!emptied_, "cannot access the data of a storage that was resized to 0 bytes");
  throw Error(ErrorKind::Runtime, "cannot access the data of a storage on ", str(device_),
              ": it has a size but no memory");
}

void destroy(Storage* s) {
  const size_t block = s->block_bytes_;
  s->~Storage();
  cpu_free(s, block);
}

}  // namespace facula
