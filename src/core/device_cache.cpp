#include "core/device_cache.h"

#include <algorithm>

#include "core/error.h"
#include "core/tensor.h"

namespace facula {
namespace {

// Blocks are multiples of 512 bytes. Up to 1 MB they are cut out of segments of 2 MB, up to 10 MB
// out of segments of 20 MB, and larger ones have segments of their own in steps of 2 MB.
constexpr size_t unit = 512, small_block = 1 << 20, small_segment = 2 << 20;
constexpr size_t middle_block = 10 << 20, middle_segment = 20 << 20, step = 2 << 20;
constexpr size_t most_shown = 5, large_block = 64 << 10;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }
size_t block_bytes(size_t bytes) { return round_up(std::max<size_t>(bytes, 1), unit); }
size_t segment_bytes(size_t block) {
  if (block <= small_block) return small_segment;
  return block < middle_block ? middle_segment : round_up(block, step);
}

// "1.50 GiB", as PyTorch writes sizes.
std::string in_words(size_t bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB"};
  int u = 0;
  double n = static_cast<double>(bytes);
  for (; n >= 1024 && u < 3; ++u) n /= 1024;
  if (u == 0) return concat(bytes, " bytes");
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", n, units[u]);
  return text;
}

}  // namespace

void DeviceCache::change(PooledCounter& c, BlockPool pool, int64_t by) {
  c[static_cast<int>(BlockPool::All)].change(by);
  c[static_cast<int>(pool)].change(by);
}

// --- allocation

DeviceCache::Block* DeviceCache::find_free(size_t bytes, uint32_t stream, BlockPool pool) {
  FreeBlocks& blocks = free_blocks(pool);
  Block wanted{nullptr, bytes, stream, pool};
  const auto at = blocks.lower_bound(&wanted);
  if (at == blocks.end() || (*at)->stream != stream) return nullptr;
  Block* b = *at;
  blocks.erase(at);
  if (b->is_split()) {
    change(stats_.inactive_split, pool, -1);
    change(stats_.inactive_split_bytes, pool, -static_cast<int64_t>(b->bytes));
  }
  return b;
}

void* DeviceCache::raw_allocate(size_t bytes) {
  const auto held = static_cast<size_t>(stats_.reserved_bytes[0].current);
  if (bytes > limit_ || held > limit_ - bytes) return nullptr;
  void* data = nullptr;
  check_device_code(table_.allocate(device_.index, bytes, &data), device_, "allocate");
  return data;
}

DeviceCache::Block* DeviceCache::new_segment(size_t bytes, uint32_t stream, BlockPool pool) {
  void* data = raw_allocate(bytes);
  if (!data) {
    wait_for_all();
    return_segments();
    data = raw_allocate(bytes);
    if (data) ++stats_.retries;
  }
  if (!data) return nullptr;
  ++stats_.device_allocations;
  change(stats_.segments, pool, 1);
  change(stats_.reserved_bytes, pool, static_cast<int64_t>(bytes));
  return new Block{static_cast<char*>(data), bytes, stream, pool};
}

// Splits off the rest of a block after `bytes`, if it is large enough to be useful.
void DeviceCache::split(Block* b, size_t bytes) {
  const size_t left = b->bytes - bytes;
  if (left < (b->pool == BlockPool::Small ? unit : small_block + 1)) return;
  auto* rest = new Block{b->data + bytes, left, b->stream, b->pool};
  rest->before = b;
  rest->after = b->after;
  if (rest->after) rest->after->before = rest;
  b->after = rest;
  b->bytes = bytes;
  free_blocks(b->pool).insert(rest);
  change(stats_.inactive_split, b->pool, 1);
  change(stats_.inactive_split_bytes, b->pool, static_cast<int64_t>(left));
}

void* DeviceCache::allocate(size_t bytes, uint32_t stream) {
  check_kind(ErrorKind::Memory, bytes <= PTRDIFF_MAX / 2, str(device_),
             " out of memory. Tried to allocate ", in_words(bytes));
  const std::lock_guard guard(mutex_);
  take_passed_events();
  const size_t size = block_bytes(bytes), segment = segment_bytes(size);
  const BlockPool pool = size <= small_block ? BlockPool::Small : BlockPool::Large;
  Block* b = find_free(size, stream, pool);
  if (!b) b = new_segment(segment, stream, pool);
  if (!b) fail(bytes, segment);
  split(b, size);
  b->in_use = true;
  b->requested = bytes;
  in_use_[b->data] = b;
  change(stats_.allocations, pool, 1);
  change(stats_.allocated_bytes, pool, static_cast<int64_t>(b->bytes));
  change(stats_.requested_bytes, pool, static_cast<int64_t>(bytes));
  change(stats_.active, pool, 1);
  change(stats_.active_bytes, pool, static_cast<int64_t>(b->bytes));
  return b->data;
}

void DeviceCache::fail(size_t bytes, size_t segment) {
  ++stats_.out_of_memory;
  const auto used = static_cast<size_t>(stats_.allocated_bytes[0].current);
  const auto held = static_cast<size_t>(stats_.reserved_bytes[0].current);
  std::string text = concat(str(device_), " out of memory. Tried to allocate ", in_words(bytes));
  if (table_.memory_info) {
    const MemoryInfo m = info();
    text += concat(". The device has a total capacity of ", in_words(m.total), " of which ",
                   in_words(m.free), " is free");
  }
  if (limit_ != SIZE_MAX && segment + held > limit_)
    text +=
        concat(". This process may hold ", in_words(limit_), " (set_per_process_memory_fraction)");
  text += concat(". ", in_words(used), " is in use by tensors, and ", in_words(held - used),
                 " is reserved but unallocated", largest_blocks());
  throw Error(ErrorKind::Memory, text);
}

std::string DeviceCache::largest_blocks() const {
  std::vector<const Block*> all;
  for (const auto& [data, b] : in_use_) all.push_back(b);
  std::ranges::sort(all, std::ranges::greater(), [](const Block* b) { return b->requested; });
  if (all.empty()) return {};
  std::string text = ". The largest blocks in use:";
  for (size_t i = 0; i < std::min(all.size(), most_shown); ++i) {
    text += concat("\n  ", all[i]->requested, " bytes");
    if (all[i]->dtype != DType::Undefined)
      text += concat(": ", facula::info(all[i]->dtype).name, " ", str(IntSpan(all[i]->sizes)));
  }
  if (all.size() > most_shown) text += concat("\n  and ", all.size() - most_shown, " more");
  return text;
}

// --- release

void DeviceCache::release(void* data) {
  const std::lock_guard guard(mutex_);
  const auto at = in_use_.find(data);
  if (at == in_use_.end()) return;
  if (captured_) return captured_->push_back(data);
  Block* b = at->second;
  in_use_.erase(at);
  b->in_use = false;
  change(stats_.allocations, b->pool, -1);
  change(stats_.allocated_bytes, b->pool, -static_cast<int64_t>(b->bytes));
  change(stats_.requested_bytes, b->pool, -static_cast<int64_t>(b->requested));
  b->dtype = DType::Undefined;
  if (b->other_streams.empty()) return make_free(b);
  wait_for_streams(b);
}

void DeviceCache::absorb(Block* into, Block* other) {
  free_blocks(other->pool).erase(other);
  change(stats_.inactive_split, other->pool, -1);
  change(stats_.inactive_split_bytes, other->pool, -static_cast<int64_t>(other->bytes));
  into->data = std::min(into->data, other->data);
  into->bytes += other->bytes;
  if (other == into->before) {
    into->before = other->before;
    if (into->before) into->before->after = into;
  } else {
    into->after = other->after;
    if (into->after) into->after->before = into;
  }
  delete other;
}

void DeviceCache::make_free(Block* b) {
  change(stats_.active, b->pool, -1);
  change(stats_.active_bytes, b->pool, -static_cast<int64_t>(b->bytes));
  const auto idle = [](const Block* n) { return n && !n->in_use && n->waits == 0; };
  if (idle(b->before)) absorb(b, b->before);
  if (idle(b->after)) absorb(b, b->after);
  free_blocks(b->pool).insert(b);
  if (!b->is_split()) return;
  change(stats_.inactive_split, b->pool, 1);
  change(stats_.inactive_split_bytes, b->pool, static_cast<int64_t>(b->bytes));
}

// Records an event on each other stream that uses the block. Without events the host waits.
void DeviceCache::wait_for_streams(Block* b) {
  const std::vector<Stream> others = std::exchange(b->other_streams, {});
  b->waits = 1;  // one for this loop, so that the block does not become free in the middle of it
  for (const Stream& s : others) {
    try {
      if (!table_.create_event) {
        synchronize_stream(s);
        continue;
      }
      auto event = std::make_unique<DeviceEvent>();
      event->record(s);
      waiting_.push_back({std::move(event), b});
      ++b->waits;
    } catch (const Error&) {
      // The device failed, which its next use will report. The block is not reused.
      return;
    }
  }
  if (--b->waits == 0) make_free(b);
}

void DeviceCache::take_passed_events() {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!it->event->is_done()) {
      ++it;
      continue;
    }
    Block* b = it->block;
    it = waiting_.erase(it);
    if (--b->waits == 0) make_free(b);
  }
}

void DeviceCache::wait_for_all() {
  for (const Waiting& w : waiting_) w.event->synchronize();
  take_passed_events();
}

void DeviceCache::return_segments() {
  const auto whole = [](const Block* b) { return !b->is_split(); };
  if (std::ranges::none_of(small_, whole) && std::ranges::none_of(large_, whole)) return;
  synchronize_device(device_);  // the device may still be using blocks that the host has freed
  for (FreeBlocks* blocks : {&small_, &large_})
    for (auto it = blocks->begin(); it != blocks->end();) {
      Block* b = *it;
      if (!whole(b)) {
        ++it;
        continue;
      }
      it = blocks->erase(it);
      ++stats_.device_releases;
      change(stats_.segments, b->pool, -1);
      change(stats_.reserved_bytes, b->pool, -static_cast<int64_t>(b->bytes));
      const int code = table_.release(device_.index, b->data, b->bytes);
      delete b;
      check_device_code(code, device_, "release");
    }
}

void DeviceCache::empty() {
  const std::lock_guard guard(mutex_);
  wait_for_all();
  return_segments();
}

void DeviceCache::record_stream(const void* data, Stream s) {
  const std::lock_guard guard(mutex_);
  const auto at = in_use_.find(data);
  if (at == in_use_.end() || at->second->stream == s.id) return;
  std::vector<Stream>& others = at->second->other_streams;
  if (std::ranges::find(others, s) == others.end()) others.push_back(s);
}

void DeviceCache::describe(const void* data, DType dtype, IntSpan sizes) noexcept {
  const std::lock_guard guard(mutex_);
  const auto at = in_use_.find(data);
  if (at == in_use_.end() || at->second->bytes < large_block) return;
  try {
    at->second->sizes.assign(sizes.begin(), sizes.end());
    at->second->dtype = dtype;
  } catch (const std::bad_alloc&) {
    // The list only makes an error text more helpful, so failing to extend it is no error.
  }
}

// --- capture

void DeviceCache::begin_capture() {
  const std::lock_guard guard(mutex_);
  check(!captured_, "capture_begin(): another capture is on at ", str(device_));
  captured_ = &captured_blocks_;
}
std::vector<void*> DeviceCache::end_capture() {
  const std::lock_guard guard(mutex_);
  captured_ = nullptr;
  return std::exchange(captured_blocks_, {});
}

// --- statistics

DeviceMemoryStats DeviceCache::stats() {
  const std::lock_guard guard(mutex_);
  return stats_;
}

template <class F>
void DeviceCache::for_each_counter(F f) {
  const std::lock_guard guard(mutex_);
  DeviceMemoryStats& s = stats_;
  for (PooledCounter* c :
       {&s.allocations, &s.segments, &s.active, &s.inactive_split, &s.allocated_bytes,
        &s.reserved_bytes, &s.active_bytes, &s.inactive_split_bytes, &s.requested_bytes})
    for (DeviceCounter& one : *c) f(one);
}

void DeviceCache::reset_peaks() {
  for_each_counter([](DeviceCounter& c) { c.peak = c.current; });
}
void DeviceCache::reset_totals() {
  for_each_counter([](DeviceCounter& c) { c.gained = c.lost = 0; });
  const std::lock_guard guard(mutex_);
  stats_.retries = stats_.out_of_memory = 0;
  stats_.device_allocations = stats_.device_releases = 0;
}

void DeviceCache::set_fraction(double fraction) {
  check_value(fraction >= 0 && fraction <= 1,
              "set_per_process_memory_fraction(): expected a fraction from 0 to 1; got ", fraction);
  const size_t total = info().total;
  const std::lock_guard guard(mutex_);
  fraction_ = fraction;
  limit_ = fraction == 1 ? SIZE_MAX : static_cast<size_t>(fraction * static_cast<double>(total));
}
double DeviceCache::fraction() {
  const std::lock_guard guard(mutex_);
  return fraction_;
}

MemoryInfo DeviceCache::info() const {
  needed_entry(table_.memory_info, device_, "memory_info");
  MemoryInfo m{};
  check_device_code(table_.memory_info(device_.index, &m.free, &m.total), device_, "memory_info");
  return m;
}

}  // namespace facula
