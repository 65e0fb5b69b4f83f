// Memory of devices: one caching allocator for every kind, over the raw allocate and release of its
// table. Blocks belong to the stream that they were allocated for, and are used again in its order.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/small_vector.h"
#include "core/stream.h"

namespace facula {

// A number that goes up and down: now, the most since the peaks were reset, and both ways in all.
struct DeviceCounter {
  int64_t current = 0, peak = 0, gained = 0, lost = 0;
  void change(int64_t by) {
    current += by;
    if (current > peak) peak = current;
    (by > 0 ? gained : lost) += by > 0 ? by : -by;
  }
};

// Each counter for all blocks, and for those of the pools of large and small ones.
using PooledCounter = std::array<DeviceCounter, 3>;
enum class BlockPool : uint8_t { All, Large, Small };

struct DeviceMemoryStats {
  PooledCounter allocations;     // blocks in use
  PooledCounter segments;        // blocks held from the device
  PooledCounter active;          // in use, or let go of and waiting for other streams
  PooledCounter inactive_split;  // parts of segments that wait for reuse beside parts in use
  PooledCounter allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
  PooledCounter requested_bytes;  // before sizes are rounded up
  int64_t retries = 0;            // requests that the device met after the cache was emptied
  int64_t out_of_memory = 0;
  int64_t device_allocations = 0, device_releases = 0;
};

// The index of the device is given in all of these.
DeviceMemoryStats device_memory_stats(Device d);
void reset_device_peaks(Device d);
void reset_device_totals(Device d);
// Gives back segments that nothing uses, of every device of the kind.
void empty_device_cache(DeviceType type);
// No more than this share of the device's memory will be held; from 0 to 1.
void set_device_memory_fraction(Device d, double fraction);
double device_memory_fraction(Device d);
// Free and total bytes, as the device says.
struct MemoryInfo {
  size_t free, total;
};
MemoryInfo device_memory_info(Device d);

// The memory is used on another stream too: after its release it waits until that stream has
// passed what it has been given by then. Nothing for memory that is not from here.
void record_stream(Device d, const void* data, Stream s);
// What a large block was allocated for, told when memory runs out.
void describe_device_block(Device d, const void* data, DType dtype, IntSpan sizes) noexcept;

// From now on memory that is released belongs to the capture; the end gives it.
void begin_memory_capture(Device d);
std::vector<void*> end_memory_capture(Device d);

// --- page-locked host memory, which copies may read and write late

// The kind whose table locks memory; null for 0 bytes.
void* allocate_pinned(DeviceType type, size_t bytes);
// Used again when the streams that copied from or to it have passed.
void release_pinned(void* data);
// Whether the address lies in memory from allocate_pinned, or the device says that it is locked.
bool is_pinned(const void* data);
// Gives back what is kept for reuse.
void empty_pinned_cache();
// A copy on the stream reads or writes the memory.
void record_pinned_use(const void* data, Stream s);

}  // namespace facula
