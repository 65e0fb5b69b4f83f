#include "core/fenced.h"

#if FACULA_FENCED

#include <malloc.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/allocator.h"
#include "core/environment.h"

namespace facula {
namespace {

constexpr uint8_t canary = 0xa5;
constexpr size_t page = 4096;
// A limit, because every byte is written and so really takes memory.
constexpr size_t most_bytes = size_t{4} << 30;

std::atomic<uint8_t> fill_byte{0x7f};

// The pages of a block. The block ends at the guard page behind it, except for alignment.
struct Place {
  char* map;
  size_t mapped;  // bytes, with both guard pages
  char* first;    // the first page between them
  size_t pages;
  char* block;
};

constexpr size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }

Place place_from_map(void* map, size_t bytes) {
  const size_t pages = rounded(bytes, page);
  char* first = static_cast<char*>(map) + page;
  return {static_cast<char*>(map), pages + 2 * page, first, pages,
          first + pages - rounded(bytes, cpu_alignment)};
}

Place place_of(void* block, size_t bytes) {
  const size_t pages = rounded(bytes, page);
  char* first = static_cast<char*>(block) - (pages - rounded(bytes, cpu_alignment));
  return place_from_map(first - page, bytes);
}

// Calls f for the bytes of these pages that are not part of the block.
template <class F>
void each_gap(const Place& place, size_t bytes, F f) {
  f(place.first, static_cast<size_t>(place.block - place.first));
  char* end = place.block + bytes;
  f(end, static_cast<size_t>(place.first + place.pages - end));
}

void check_gap(const char* gap, size_t n, const Place& place, size_t bytes) {
  for (size_t i = 0; i < n; ++i) {
    if (static_cast<uint8_t>(gap[i]) == canary) continue;
    std::fprintf(stderr, "fenced allocator: byte %td of a block of %zu bytes was written\n",
                 gap + i - place.block, bytes);
    std::abort();
  }
}

// A queue of freed blocks whose addresses stay reserved without pages for a while, so that using
// them faults.
struct Freed {
  void* map;
  size_t mapped;
};
constexpr size_t most_freed_bytes = size_t{64} << 10;
std::array<std::atomic<Freed*>, 1024> quarantine{};
std::atomic<size_t> next_freed{0};

void quarantine_block(const Place& place) noexcept {
  void* gone = mmap(place.map, place.mapped, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  Freed* entry = gone == MAP_FAILED || place.mapped > most_freed_bytes
                     ? nullptr
                     : new (std::nothrow) Freed{place.map, place.mapped};
  if (entry == nullptr) {
    munmap(place.map, place.mapped);
    return;
  }
  Freed* old = quarantine[next_freed.fetch_add(1) % quarantine.size()].exchange(entry);
  if (old == nullptr) return;
  munmap(old->map, old->mapped);
  delete old;
}

}  // namespace

bool fences_on() noexcept {
  static const bool on = [] {
    const char* given = environment_value("FACULA_FENCED_ALLOCATOR");
    return given != nullptr && std::strcmp(given, "1") == 0;
  }();
  return on;
}

void* fenced_allocate(size_t bytes) noexcept {
  if (bytes > most_bytes) return nullptr;
  const size_t mapped = rounded(bytes, page) + 2 * page;
  void* map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  const Place place = place_from_map(map, bytes);
  if (mprotect(place.first, place.pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, mapped);
    return nullptr;
  }
  std::memset(place.block, fill_byte, bytes);
  each_gap(place, bytes, [](char* gap, size_t n) { std::memset(gap, canary, n); });
  return place.block;
}

void fenced_free(void* p, size_t bytes) noexcept {
  const Place place = place_of(p, bytes);
  each_gap(place, bytes, [&](const char* gap, size_t n) { check_gap(gap, n, place, bytes); });
  quarantine_block(place);
}

void set_fence_fill(uint8_t byte) noexcept {
  fill_byte = byte;
#if defined(M_PERTURB)
  mallopt(M_PERTURB, static_cast<uint8_t>(~byte));
#endif
}

}  // namespace facula

#endif
