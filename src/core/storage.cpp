#include "core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/allocator.h"
#include "core/error.h"

namespace facula {

Ref<Storage> Storage::make(Device device, size_t bytes) {
  void* room = cpu_allocate(sizeof(Storage));
  auto* s = new (room) Storage(device, bytes);
  Ref<Storage> owner = Ref<Storage>::take(s);
  if (device.is_meta())
    s->has_memory_ = false;
  else if (bytes)
    s->data_ = device_allocate(device, bytes);
  return owner;
}

Ref<Storage> Storage::external(Device device, void* data, size_t bytes, void* context,
                               ExternalDeleter deleter) {
  auto* s = new (cpu_allocate(sizeof(Storage))) Storage(device, bytes);
  s->data_ = data;
  s->context_ = context;
  s->deleter_ = deleter;
  s->resizable_ = false;
  return Ref<Storage>::take(s);
}

void Storage::release_memory() {
  if (deleter_)
    deleter_(context_);
  else if (data_)
    device_release(device_, data_, nbytes_);
  data_ = nullptr;
}

Storage::~Storage() { release_memory(); }

void Storage::resize(size_t bytes) {
  check(resizable_, "resize_(): expected a storage that owns its memory; got one over external "
        "memory, which is not resizable");
  if (!has_memory_) {
    nbytes_ = bytes;
    return;
  }
  void* fresh = bytes ? device_allocate(device_, bytes) : nullptr;
  const size_t kept = std::min(bytes, nbytes_);
  if (kept && device_.is_cpu())
    std::memcpy(fresh, data_, kept);
  else if (kept)
    device_table(device_.type)->copy_within(fresh, data_, kept, device_.index);
  release_memory();
  data_ = fresh;
  nbytes_ = bytes;
}

void Storage::no_memory() const {
  throw Error(ErrorKind::Runtime, "cannot access the data of a storage on ", str(device_),
              ": it has a size but no memory");
}

void destroy(Storage* s) {
  s->~Storage();
  cpu_free(s, sizeof(Storage));
}

}  // namespace facula
