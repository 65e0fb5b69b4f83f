// Device memory: one caching allocator for all kinds of devices, on top of the raw allocate and
// release of the device table. A block belongs to the stream that it was allocated for, and is
// reused on that stream without waiting.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/small_vector.h"
#include "core/stream.h"

namespace facula {

// A statistic: its current value, its peak since the last reset, and the totals added and removed.
struct DeviceCounter {
  int64_t current = 0, peak = 0, gained = 0, lost = 0;
  void change(int64_t by) {
    current += by;
    if (current > peak) peak = current;
    (by > 0 ? gained : lost) += by > 0 ? by : -by;
  }
};

// A counter for all blocks, for the pool of large and for the pool of small ones, by BlockPool.
using PooledCounter = std::array<DeviceCounter, 3>;
enum class BlockPool : uint8_t { All, Large, Small };

struct DeviceMemoryStats {
  PooledCounter allocations;     // blocks in use
  PooledCounter segments;        // blocks held from the device
  PooledCounter active;          // in use, or freed and waiting for other streams
  PooledCounter inactive_split;  // free parts of segments of which other parts are in use
  PooledCounter allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
  PooledCounter requested_bytes;  // before sizes are rounded up
  int64_t retries = 0;            // allocations that succeeded after the cache was emptied
  int64_t out_of_memory = 0;
  int64_t device_allocations = 0, device_releases = 0;
};

// In all of these functions the device has an index (with_index).
DeviceMemoryStats device_memory_stats(Device d);
void reset_device_peaks(Device d);
void reset_device_totals(Device d);
// Returns unused segments of all devices of the kind to their drivers.
void empty_device_cache(DeviceType type);
// Limits the allocator to this share of the device's memory, from 0 to 1.
void set_device_memory_fraction(Device d, double fraction);
double device_memory_fraction(Device d);
// Free and total bytes, as the device says.
struct MemoryInfo {
  size_t free, total;
};
MemoryInfo device_memory_info(Device d);

// Says that the memory is used on another stream too: once freed, it is reused only after that
// stream has finished the work queued until then. Ignores memory of other allocators.
void record_stream(Device d, const void* data, Stream s);
// Notes the tensor that a large block was allocated for, to be named when memory runs out.
void describe_device_block(Device d, const void* data, DType dtype, IntSpan sizes) noexcept;

// While a capture is on, freed memory is kept for it; end_memory_capture() hands that over.
void begin_memory_capture(Device d);
std::vector<void*> end_memory_capture(Device d);

// --- page-locked host memory, which asynchronous copies may use

// Allocates memory that is page-locked for this kind of device; null for 0 bytes.
void* allocate_pinned(DeviceType type, size_t bytes);
// Frees it. It is reused once the streams that copied from or to it have finished.
void release_pinned(void* data);
// Whether the address lies in memory from allocate_pinned, or the device says that it is locked.
bool is_pinned(const void* data);
// Returns what is kept for reuse to the system.
void empty_pinned_cache();
// Says that a copy queued on the stream reads or writes the memory.
void record_pinned_use(const void* data, Stream s);

}  // namespace facula
