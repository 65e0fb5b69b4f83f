#include "core/holders.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"

namespace facula {
namespace {

constexpr size_t most_dims = 6, most_shown = 5;

struct Holder {
  size_t bytes = 0;
  DType dtype = DType::Undefined;
  uint8_t dims = 0;
  int64_t sizes[most_dims] = {};
  std::string site;
};
using Holders = std::unordered_map<const void*, Holder>;

// The list is split by block address into parts with a lock each, so that threads that allocate at
// the same time rarely wait for each other. An error text reads all parts. A fork holds all locks
// of the allocator, of which the thread sanitizer's deadlock detector allows 64.
struct alignas(64) Part {
  std::mutex mutex;
  Holders holders;
};
constexpr size_t part_count = 8;

constinit std::atomic<AllocationSite> site_of{nullptr};

// Never destroyed, since static tensors may be freed later.
Part* parts() {
  static auto* p = new Part[part_count];
  return p;
}

// Such large blocks begin at page boundaries; neighbouring pages belong to different parts.
Part& part_of(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return parts()[(address >> 12 ^ address >> 18) % part_count];
}

std::string current_site() noexcept {
  const AllocationSite site = site_of.load(std::memory_order_acquire);
  if (site == nullptr) return {};
  try {
    return site();
  } catch (...) {
    return {};
  }
}

std::string line_of(const Holder& h) {
  std::string line = concat("\n  ", h.bytes, " bytes");
  if (h.dtype != DType::Undefined)
    line += concat(": ", info(h.dtype).name, " ", str(IntSpan(h.sizes, h.dims)));
  if (!h.site.empty()) line += ", allocated at " + h.site;
  return line;
}

std::vector<Holder> by_size() {
  std::vector<Holder> all;
  for (Part& part : std::span(parts(), part_count)) {
    const std::lock_guard lock(part.mutex);
    for (const auto& [p, holder] : part.holders) all.push_back(holder);
  }
  std::ranges::sort(all, std::ranges::greater(), &Holder::bytes);
  return all;
}

}  // namespace

void note_block(const void* p, size_t bytes) noexcept {
  std::string site = current_site();
  Part& part = part_of(p);
  const std::lock_guard lock(part.mutex);
  try {
    Holder& h = part.holders[p];
    h = Holder();
    h.bytes = bytes;
    h.site = std::move(site);
  } catch (const std::bad_alloc&) {
    // The list only makes an error text more helpful, so failing to extend it is no error.
  }
}

void forget_block(const void* p) noexcept {
  Part& part = part_of(p);
  const std::lock_guard lock(part.mutex);
  part.holders.erase(p);
}

void describe_block(const void* p, DType dtype, IntSpan sizes) noexcept {
  Part& part = part_of(p);
  const std::lock_guard lock(part.mutex);
  const auto it = part.holders.find(p);
  if (it == part.holders.end() || sizes.size() > most_dims) return;
  Holder& h = it->second;
  h.dtype = dtype;
  h.dims = static_cast<uint8_t>(sizes.size());
  std::ranges::copy(sizes, h.sizes);
}

void set_allocation_site(AllocationSite site) { site_of.store(site, std::memory_order_release); }
bool tracks_allocations() { return site_of.load(std::memory_order_relaxed) != nullptr; }

std::string largest_holders() {
  const std::vector<Holder> all = by_size();
  if (all.empty()) return {};
  std::string text = ". The largest blocks in use:";
  for (size_t i = 0; i < std::min(all.size(), most_shown); ++i) text += line_of(all[i]);
  if (all.size() > most_shown) text += concat("\n  and ", all.size() - most_shown, " more");
  return text;
}

void lock_holders() {
  for (Part& part : std::span(parts(), part_count)) part.mutex.lock();
}
void unlock_holders() {
  for (Part& part : std::span(parts(), part_count)) part.mutex.unlock();
}

}  // namespace facula
