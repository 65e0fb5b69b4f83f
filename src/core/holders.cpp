#include "core/holders.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
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

constinit std::mutex mutex;
constinit std::atomic<AllocationSite> site_of{nullptr};

// Never destroyed: tensors of static storage duration outlive it otherwise.
Holders& holders() {
  static auto* h = new Holders;
  return *h;
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
  {
    const std::lock_guard lock(mutex);
    all.reserve(holders().size());
    for (const auto& [p, holder] : holders()) all.push_back(holder);
  }
  std::ranges::sort(all, std::ranges::greater(), &Holder::bytes);
  return all;
}

}  // namespace

void note_block(const void* p, size_t bytes) noexcept {
  std::string site = current_site();
  const std::lock_guard lock(mutex);
  try {
    Holder& h = holders()[p];
    h = Holder();
    h.bytes = bytes;
    h.site = std::move(site);
  } catch (const std::bad_alloc&) {
    // The list is a help for the reader of an error, no more.
  }
}

void forget_block(const void* p) noexcept {
  const std::lock_guard lock(mutex);
  holders().erase(p);
}

void describe_block(const void* p, DType dtype, IntSpan sizes) noexcept {
  const std::lock_guard lock(mutex);
  const auto it = holders().find(p);
  if (it == holders().end() || sizes.size() > most_dims) return;
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

void lock_holders() { mutex.lock(); }
void unlock_holders() { mutex.unlock(); }

}  // namespace facula
