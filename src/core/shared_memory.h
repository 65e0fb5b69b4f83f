// Memory that processes share: segments, each of a memfd or of a file in /dev/shm, cut into blocks.
//
// A block is not used twice while others can see it, so a segment needs no owner: it ends when the
// last process that maps it lets go, and the system sees to that even after kill -9. Small blocks
// lie in one segment, and segments grow with their number, so ten thousand tensors need a few
// hundred descriptors.
#pragma once
#include <cstdint>
#include <string>

#include "core/storage.h"

namespace facula {

// Where a shared storage lies, for a process that is to map it.
struct SharedBlock {
  uint64_t segment = 0;  // the same number in all processes
  std::string name;      // of the file; empty where the memory is anonymous
  int descriptor = -1;   // in this process
  size_t segment_bytes = 0;
  size_t offset = 0;
};

// Zeroed memory that processes can share: anonymous (memfd), or where `prefix` is not empty, in
// /dev/shm under a name that begins so, which the last process that lets go of it removes.
// Raises RuntimeError where the system has none.
Ref<Storage> new_shared_storage(size_t bytes, const std::string& prefix);
// Moves the bytes of a CPU storage into such memory; tensors over it follow. The caller has a
// TensorChange. Nothing happens where they lie there already.
void share_storage(Storage& s, const std::string& prefix);
bool is_shared(const Storage& s);
// Raises RuntimeError where the storage is not shared.
SharedBlock shared_block(const Storage& s);
// A message about the storage's block is under way: its segment stays open here, and its name
// stays, until map_shared_storage() with `ends_message` was called somewhere.
void begin_shared_message(const Storage& s);
// A storage over a block of another process, or of this one. A segment that this process has not
// mapped yet is opened by its name, else by `path`, else through a copy of the descriptor.
Ref<Storage> map_shared_storage(const SharedBlock& block, const std::string& path, size_t bytes,
                                bool ends_message);

// At the end of a process, which runs no destructors: others may remove the names of its segments.
void let_go_of_shared_names();

// Whether large segments are kept for another use when their storages are gone: by the process that
// made them, once nobody else has storages there, and by receivers, which stay ready for the next
// message. For processes that send much of the same size; `false` closes what was kept.
void keep_shared_segments(bool keep);

struct SharedMemoryStats {
  int64_t segments = 0;     // mapped
  int64_t descriptors = 0;  // open
  int64_t waiting = 0;      // without a storage here, for the receiver of a message
  int64_t blocks = 0;       // storages
};
SharedMemoryStats shared_memory_stats();

}  // namespace facula
