// Page-locked host memory. Freed blocks are kept for reuse, after the streams that copy from or to
// them have finished.
#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device_allocator.h"
#include "core/device_table.h"
#include "core/error.h"

namespace facula {
namespace {

struct PinnedBlock {
  char* data;
  size_t bytes;  // a power of two
  DeviceType type;
  std::vector<Stream> streams;  // that use it
};
struct Waiting {
  std::vector<std::unique_ptr<DeviceEvent>> events;
  PinnedBlock block;
};

// Never destroyed, since static tensors may be freed later.
struct PinnedMemory {
  std::mutex mutex;
  std::map<const char*, PinnedBlock> in_use;  // by address, to find what an address lies in
  std::map<std::pair<DeviceType, size_t>, std::vector<PinnedBlock>> free;
  std::deque<Waiting> waiting;
};
PinnedMemory& pinned() {
  static auto* p = new PinnedMemory;
  return *p;
}

void make_free(PinnedMemory& all, PinnedBlock b) {
  b.streams.clear();
  all.free[{b.type, b.bytes}].push_back(std::move(b));
}

void take_passed_events(PinnedMemory& all) {
  const auto done = [](const Waiting& w) {
    return std::ranges::all_of(w.events, [](const auto& e) { return e->is_done(); });
  };
  while (!all.waiting.empty() && done(all.waiting.front())) {
    make_free(all, std::move(all.waiting.front().block));
    all.waiting.pop_front();
  }
}

// The block that contains an address, or null.
PinnedBlock* block_of(PinnedMemory& all, const void* data) {
  const auto* at = static_cast<const char*>(data);
  auto it = all.in_use.upper_bound(at);
  if (it == all.in_use.begin()) return nullptr;
  PinnedBlock& b = (--it)->second;
  return at < b.data + b.bytes ? &b : nullptr;
}

}  // namespace

void* allocate_pinned(DeviceType type, size_t bytes) {
  if (bytes == 0) return nullptr;
  check_kind(ErrorKind::Memory, bytes <= PTRDIFF_MAX / 2, "pin_memory(): cannot lock ", bytes,
             " bytes of host memory");
  const DeviceTable& t = running_table(type);
  needed_entry(t.allocate_pinned, {type, -1}, "allocate_pinned");
  const size_t size = std::bit_ceil(std::max<size_t>(bytes, 64));
  PinnedMemory& all = pinned();
  const std::lock_guard guard(all.mutex);
  take_passed_events(all);
  std::vector<PinnedBlock>& kept = all.free[{type, size}];
  PinnedBlock b{nullptr, size, type, {}};
  if (!kept.empty()) {
    b = std::move(kept.back());
    kept.pop_back();
  } else {
    void* data = nullptr;
    check_device_code(t.allocate_pinned(size, &data), {type, -1}, "allocate_pinned");
    check_kind(ErrorKind::Memory, data != nullptr, "pin_memory(): the device cannot lock ", size,
               " bytes of host memory");
    b.data = static_cast<char*>(data);
  }
  void* data = b.data;
  all.in_use.emplace(b.data, std::move(b));
  return data;
}

void release_pinned(void* data) {
  if (devices_lost_by_fork()) return;
  PinnedMemory& all = pinned();
  const std::lock_guard guard(all.mutex);
  const auto at = all.in_use.find(static_cast<const char*>(data));
  if (at == all.in_use.end()) return;
  PinnedBlock b = std::move(at->second);
  all.in_use.erase(at);
  Waiting w{{}, std::move(b)};
  try {
    for (const Stream& s : w.block.streams) {
      if (!device_table(s.device.type)->create_event) {
        synchronize_stream(s);
        continue;
      }
      w.events.push_back(std::make_unique<DeviceEvent>());
      w.events.back()->record(s);
    }
  } catch (const Error&) {
    return;  // the device failed, which its next use will report; the block is not reused
  }
  if (w.events.empty()) return make_free(all, std::move(w.block));
  all.waiting.push_back(std::move(w));
}

bool is_pinned(const void* data) {
  if (!data || devices_lost_by_fork()) return false;
  {
    PinnedMemory& all = pinned();
    const std::lock_guard guard(all.mutex);
    if (block_of(all, data)) return true;
  }
  for (int k = 0; k < device_kinds; ++k) {
    const DeviceType type = device_type_of_kind(k);
    if (!is_started(type)) continue;
    const DeviceTable* t = device_table(type);
    if (t->is_pinned && t->is_pinned(data)) return true;
  }
  return false;
}

void empty_pinned_cache() {
  if (devices_lost_by_fork()) return;
  PinnedMemory& all = pinned();
  const std::lock_guard guard(all.mutex);
  for (const Waiting& w : all.waiting)
    for (const auto& e : w.events) e->synchronize();
  take_passed_events(all);
  for (auto& [key, blocks] : all.free) {
    while (!blocks.empty()) {
      const PinnedBlock b = std::move(blocks.back());
      blocks.pop_back();
      check_device_code(device_table(b.type)->release_pinned(b.data), {b.type, -1},
                        "release_pinned");
    }
  }
}

void record_pinned_use(const void* data, Stream s) {
  PinnedMemory& all = pinned();
  const std::lock_guard guard(all.mutex);
  PinnedBlock* b = block_of(all, data);
  if (b && std::ranges::find(b->streams, s) == b->streams.end()) b->streams.push_back(s);
}

}  // namespace facula
