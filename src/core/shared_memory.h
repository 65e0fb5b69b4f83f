// Memory shared between processes: segments, each a memfd or a file in /dev/shm, cut into blocks.
//
// A block is not reused while another process can see it, so no process has to own a segment: the
// system frees it when the last process that maps it unmaps it or
// dies, even by kill -9. Small blocks share a segment, and later segments are larger, so that ten
// thousand tensors need only a few hundred file descriptors.
#pragma once
#include <cstdint>
#include <string>

#include "core/storage.h"

namespace facula {

// Where a shared storage lies, for another process to map it.
struct SharedBlock {
  uint64_t segment = 0;  // the same number in all processes
  std::string name;      // of the file; empty where the memory is anonymous
  int descriptor = -1;   // in this process
  size_t segment_bytes = 0;
  size_t offset = 0;
};

// A zeroed storage in shared memory: a memfd, or if `prefix` is not empty, a file in /dev/shm whose
// name begins with it and which the last process that uses it removes. RuntimeError when the system
// has no memory.
Ref<Storage> new_shared_storage(size_t bytes, const std::string& prefix);
// Moves the bytes of a CPU storage into shared memory, with all tensors over it; does nothing if
// they are there already. The caller holds a TensorChange.
void share_storage(Storage& s, const std::string& prefix);
bool is_shared(const Storage& s);
// Raises RuntimeError if the storage is not shared.
SharedBlock shared_block(const Storage& s);
// Says that a message about the storage is on its way to another process: the segment and its name
// are kept until some process calls map_shared_storage() with `ends_message`.
void begin_shared_message(const Storage& s);
// A storage over a block that a process has shared. A segment that is not mapped here yet is opened
// by its name, else by `path`, else by a copy of the descriptor.
Ref<Storage> map_shared_storage(const SharedBlock& block, const std::string& path, size_t bytes,
                                bool ends_message);

// Called at the exit of a process, which runs no destructors: others may then remove the names of
// its segments.
void let_go_of_shared_names();

// Whether large segments are kept open for reuse after their storages are freed, by the process
// that made them and by the receivers. Saves time when many messages have the same size; `false`
// closes the segments that were kept.
void keep_shared_segments(bool keep);

struct SharedMemoryStats {
  int64_t segments = 0;     // mapped
  int64_t descriptors = 0;  // open
  int64_t waiting = 0;      // kept for the receiver of a message, without a storage here
  int64_t blocks = 0;       // storages
};
SharedMemoryStats shared_memory_stats();

}  // namespace facula
