#include "core/device_allocator.h"

#include <atomic>

#include "core/allocator.h"
#include "core/device_cache.h"
#include "core/error.h"

namespace facula {
namespace {

constexpr int most_indices = 128;
// The cache of each device, made at its first allocation and never destroyed.
constinit std::atomic<DeviceCache*> caches[device_kinds][most_indices] = {};

DeviceCache* cache_there(Device d) {
  const int k = device_kind(d.type);
  return k < 0 || d.index < 0 ? nullptr : caches[k][d.index].load(std::memory_order_acquire);
}

DeviceCache& cache_of(Device d) {
  if (DeviceCache* c = cache_there(d)) return *c;
  auto* made = new DeviceCache(d);
  DeviceCache* other = nullptr;
  std::atomic<DeviceCache*>& slot = caches[device_kind(d.type)][d.index];
  if (slot.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *other;
}

}  // namespace

void* device_allocate(Device d, size_t bytes) {
  if (d.is_cpu()) [[likely]]
    return cpu_allocate(bytes);
  check(is_registered(d.type), "cannot allocate on device ", str(d),
        ": no such device in this process");
  if (bytes == 0) return nullptr;
  return cache_of(d).allocate(bytes, current_stream(d).id);
}

void device_release(Device d, void* data, size_t bytes) {
  if (d.is_cpu()) [[likely]]
    return cpu_free(data, bytes);
  if (data && !devices_lost_by_fork()) cache_of(d).release(data);
}

DeviceMemoryStats device_memory_stats(Device d) {
  DeviceCache* c = cache_there(d);
  return c ? c->stats() : DeviceMemoryStats();
}
void reset_device_peaks(Device d) {
  if (DeviceCache* c = cache_there(d)) c->reset_peaks();
}
void reset_device_totals(Device d) {
  if (DeviceCache* c = cache_there(d)) c->reset_totals();
}
void empty_device_cache(DeviceType type) {
  for (int i = 0; i < most_indices; ++i)
    if (DeviceCache* c = cache_there({type, static_cast<int8_t>(i)})) c->empty();
}
void set_device_memory_fraction(Device d, double fraction) { cache_of(d).set_fraction(fraction); }
double device_memory_fraction(Device d) { return cache_of(d).fraction(); }
MemoryInfo device_memory_info(Device d) { return cache_of(d).info(); }

void record_stream(Device d, const void* data, Stream s) {
  check(s.device == d, "record_stream(): expected a stream of ", str(d), "; got one of ",
        str(s.device));
  if (DeviceCache* c = cache_there(d)) c->record_stream(data, s);
}
void describe_device_block(Device d, const void* data, DType dtype, IntSpan sizes) noexcept {
  if (DeviceCache* c = cache_there(d)) c->describe(data, dtype, sizes);
}

void begin_memory_capture(Device d) { cache_of(d).begin_capture(); }
std::vector<void*> end_memory_capture(Device d) { return cache_of(d).end_capture(); }

}  // namespace facula
