// The host allocator (allocator.h). A small block comes from the thread's free list, else from the
// central list of its size class, which cuts blocks from chunks. A large block comes from a cache
// ordered by last use. Both get new memory from the system.
#include "core/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include "core/cgroup.h"
#include "core/error.h"
#include "core/fenced.h"
#include "core/fork.h"
#include "core/holders.h"

#if defined(__SANITIZE_ADDRESS__)
#define FACULA_SYSTEM_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FACULA_SYSTEM_ALLOCATOR 1
#endif
#endif

namespace facula {
namespace {

// More than any machine has: refused without asking the system.
constexpr size_t absurd_size = size_t{1} << 46;

[[noreturn]] void throw_out_of_memory(size_t bytes) {
  throw_error(ErrorKind::Runtime,
              concat("not enough memory: you tried to allocate ", bytes, " bytes; ",
                     cpu_memory_stats().allocated, " bytes are in use", largest_holders()));
}

// A quantity and the highest value it has had.
class Level {
 public:
  // Adds `delta`, which is the sum of several changes; `rise` is their highest intermediate sum.
  void add(int64_t delta, int64_t rise) {
    const int64_t before = now_.fetch_add(delta, std::memory_order_relaxed);
    int64_t seen = peak_.load(std::memory_order_relaxed);
    const int64_t reached = before + rise;
    while (seen < reached &&
           !peak_.compare_exchange_weak(seen, reached, std::memory_order_relaxed)) {
    }
  }
  void add(int64_t delta) { add(delta, std::max<int64_t>(delta, 0)); }
  int64_t now() const { return now_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(now(), std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> now_{0};
  std::atomic<int64_t> peak_{0};
};

// Counts that threads have handed in, and those of threads that ended.
struct Totals {
  Level allocated;
  Level reserved;
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> frees{0};
  std::atomic<int64_t> system_allocations{0};
};
constinit Totals totals;

void count_block(int64_t size) {
  totals.allocated.add(size);
  (size > 0 ? totals.allocations : totals.frees).fetch_add(1, std::memory_order_relaxed);
}

#if FACULA_FENCED
void* allocate_fenced(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* p = bytes > absurd_size ? nullptr : fenced_allocate(bytes);
  if (p == nullptr) throw_out_of_memory(bytes);
  count_block(static_cast<int64_t>(bytes));
  if (bytes > holder_bytes) note_block(p, bytes);
  return p;
}

void free_fenced(void* p, size_t bytes) noexcept {
  count_block(-static_cast<int64_t>(bytes));
  if (bytes > holder_bytes) forget_block(p);
  fenced_free(p, bytes);
}
#endif

}  // namespace

#if defined(FACULA_SYSTEM_ALLOCATOR)

// With the address sanitizer, every block comes from malloc so that it can check it.
void* cpu_allocate(size_t bytes) {
#if FACULA_FENCED
  if (fences_on()) return allocate_fenced(bytes);
#endif
  if (bytes == 0) return nullptr;
  if (bytes > absurd_size) throw_out_of_memory(bytes);
  void* p = ::operator new(bytes, std::align_val_t{cpu_alignment}, std::nothrow);
  if (p == nullptr) throw_out_of_memory(bytes);
  count_block(static_cast<int64_t>(bytes));
  if (bytes > holder_bytes) note_block(p, bytes);
  return p;
}

void cpu_free(void* p, size_t bytes) noexcept {
  if (p == nullptr) return;
#if FACULA_FENCED
  if (fences_on()) return free_fenced(p, bytes);
#endif
  count_block(-static_cast<int64_t>(bytes));
  if (bytes > holder_bytes) forget_block(p);
  ::operator delete(p, std::align_val_t{cpu_alignment});
}

namespace {
std::atomic<size_t> unused_cap{0};
}
void cpu_empty_cache() {}
void set_cpu_memory_cap(size_t bytes) { unused_cap = bytes; }
size_t cpu_memory_cap() { return unused_cap; }

MemoryStats cpu_memory_stats() {
  MemoryStats s;
  s.allocated = s.reserved = totals.allocated.now();
  s.peak_allocated = s.peak_reserved = totals.allocated.peak();
  s.allocations = s.system_allocations = totals.allocations;
  s.frees = totals.frees;
  return s;
}

void cpu_reset_peak_memory_stats() { totals.allocated.reset_peak(); }

#else

namespace {

// ---- The system ---------------------------------------------------------------------------------

constexpr size_t huge_page = size_t{2} << 20;

void* map_memory(size_t size) noexcept {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
#if defined(MADV_HUGEPAGE)
  if (size >= 2 * huge_page) madvise(p, size, MADV_HUGEPAGE);
#endif
  totals.reserved.add(static_cast<int64_t>(size));
  totals.system_allocations.fetch_add(1, std::memory_order_relaxed);
  return p;
}

void unmap_memory(void* p, size_t size) noexcept {
  // munmap fails if it would split a mapping and the process has too many; the pages are released
  // anyway then.
  if (munmap(p, size) != 0) madvise(p, size, MADV_DONTNEED);
  totals.reserved.add(-static_cast<int64_t>(size));
}

// ---- Size classes of small blocks ---------------------------------------------------------------

constexpr size_t small_limit = size_t{64} << 10;
static_assert(small_limit == holder_bytes);
// Up to this size each multiple of 64 is a class; above, there are 4 classes for each power of two.
constexpr size_t fine_limit = 1024;
constexpr size_t class_count = 40;

constexpr size_t size_class(size_t bytes) {
  if (bytes <= fine_limit) return (bytes - 1) / 64;
  const size_t last = (bytes - 1) / 64;
  const int log2 = std::bit_width(last);  // 5 for 1 to 2 KiB
  return 16 + static_cast<size_t>(log2 - 5) * 4 + ((last >> (log2 - 3)) & 3);
}

constexpr std::array<uint32_t, class_count> class_sizes = [] {
  std::array<uint32_t, class_count> sizes{};
  for (size_t bytes = 64; bytes <= small_limit; bytes += 64)
    sizes[size_class(bytes)] = static_cast<uint32_t>(bytes);
  return sizes;
}();
static_assert(size_class(small_limit) == class_count - 1 && class_sizes[16] == 1280);

// How many blocks a free list may hold; then half of them are moved to the central list.
constexpr uint32_t list_limit(size_t k) {
  return std::clamp<uint32_t>((uint32_t{128} << 10) / class_sizes[k], 4, 256);
}
constexpr uint32_t batch_size(size_t k) {
  return std::clamp<uint32_t>((uint32_t{16} << 10) / class_sizes[k], 1, 64);
}

struct Block {
  Block* next;
};

// ---- Central lists ------------------------------------------------------------------------------

constexpr size_t chunk_size = size_t{512} << 10;

// The header of a chunk, followed by blocks of one class. Chunks are aligned to their size.
struct alignas(cpu_alignment) Chunk {
  Chunk* next;
  uint32_t cut;   // blocks that have been cut off so far
  uint32_t idle;  // blocks of it in the central list; only valid while empty_cache runs
};

Chunk* chunk_of(void* p) {
  return reinterpret_cast<Chunk*>(reinterpret_cast<uintptr_t>(p) & ~(chunk_size - 1));
}

Chunk* map_chunk() noexcept {
  char* raw = static_cast<char*>(map_memory(2 * chunk_size));
  if (raw == nullptr) return nullptr;
  const size_t skip = -reinterpret_cast<uintptr_t>(raw) & (chunk_size - 1);
  if (skip > 0) munmap(raw, skip);
  munmap(raw + skip + chunk_size, chunk_size - skip);
  totals.reserved.add(-static_cast<int64_t>(chunk_size));
  return new (raw + skip) Chunk{nullptr, 0, 0};
}

// The free blocks of one class that are in no thread's cache.
class CentralList {
 public:
  std::mutex mutex;

  // Takes up to `wanted` blocks as a chain; null when the system has no memory.
  Block* take(size_t k, uint32_t wanted, uint32_t& got) noexcept {
    const std::lock_guard lock(mutex);
    Block* chain = nullptr;
    for (got = 0; got < wanted; ++got) {
      Block* b = head_ != nullptr ? pop() : cut(class_sizes[k], got == 0);
      if (b == nullptr) break;
      b->next = chain;
      chain = b;
    }
    return chain;
  }

  void give(Block* first, Block* last) noexcept {
    const std::lock_guard lock(mutex);
    last->next = head_;
    head_ = first;
  }

  // Unmaps the chunks whose blocks are all free.
  void release_idle_chunks() noexcept {
    const std::lock_guard lock(mutex);
    for (Chunk* c = chunks_; c != nullptr; c = c->next) c->idle = 0;
    for (Block* b = head_; b != nullptr; b = b->next) ++chunk_of(b)->idle;
    for (Block** link = &head_; *link != nullptr;) {
      const Chunk* c = chunk_of(*link);
      if (c->idle == c->cut) {
        *link = (*link)->next;
      } else {
        link = &(*link)->next;
      }
    }
    for (Chunk** link = &chunks_; *link != nullptr;) {
      Chunk* c = *link;
      if (c->idle != c->cut) {
        link = &c->next;
        continue;
      }
      *link = c->next;
      if (c == open_) open_ = nullptr;
      unmap_memory(c, chunk_size);
    }
  }

 private:
  Block* pop() noexcept {
    Block* b = head_;
    head_ = b->next;
    return b;
  }

  // The next block of the open chunk; maps another chunk only where `may_map`.
  Block* cut(size_t size, bool may_map) noexcept {
    if (open_ == nullptr || sizeof(Chunk) + (open_->cut + 1) * size > chunk_size) {
      Chunk* c = may_map ? map_chunk() : nullptr;
      if (c == nullptr) return nullptr;
      c->next = chunks_;
      chunks_ = open_ = c;
    }
    char* first = reinterpret_cast<char*>(open_) + sizeof(Chunk);
    return new (first + open_->cut++ * size) Block{nullptr};
  }

  Block* head_ = nullptr;
  Chunk* chunks_ = nullptr;
  Chunk* open_ = nullptr;
};

constinit std::array<CentralList, class_count> central;

// ---- Thread caches ------------------------------------------------------------------------------

// A counter that one thread writes and others may read.
class Counter {
 public:
  int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(int64_t x) { value_.store(x, std::memory_order_relaxed); }
  void add(int64_t x) { set(get() + x); }

 private:
  std::atomic<int64_t> value_{0};
};

struct FreeList {
  Block* head = nullptr;
  uint32_t room = 0;  // how many more blocks it may take
};

struct ThreadCache {
  std::array<FreeList, class_count> lists;
  Counter allocated;  // since the last flush: bytes, and their peak
  Counter peak;
  Counter allocations;
  Counter frees;
  ThreadCache* next = nullptr;
  ThreadCache* previous = nullptr;
};

// Empty caches with no room, so that the fast path need not test for a missing cache: a thread
// begins with the first and ends with the second.
constinit ThreadCache not_attached;
constinit ThreadCache detached;

[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCache* current = &not_attached;

constinit std::mutex registry_mutex;
constinit ThreadCache* registry = nullptr;
extern constinit ForkHandler forks;

void flush_counters(ThreadCache& c) {
  totals.allocated.add(c.allocated.get(), c.peak.get());
  totals.allocations.fetch_add(c.allocations.get(), std::memory_order_relaxed);
  totals.frees.fetch_add(c.frees.get(), std::memory_order_relaxed);
  c.allocated.set(0);
  c.peak.set(0);
  c.allocations.set(0);
  c.frees.set(0);
}

// Moves the first `n` blocks of a list to the central one.
void give_back(ThreadCache& c, size_t k, uint32_t n) noexcept {
  FreeList& list = c.lists[k];
  Block* first = list.head;
  if (first == nullptr || n == 0) return;
  Block* last = first;
  uint32_t moved = 1;
  for (; moved < n && last->next != nullptr; ++moved) last = last->next;
  list.head = last->next;
  list.room += moved;
  central[k].give(first, last);
}

void give_all_back(ThreadCache& c) noexcept {
  for (size_t k = 0; k < class_count; ++k) give_back(c, k, list_limit(k));
}

void unlink(ThreadCache* c) {
  (c->previous != nullptr ? c->previous->next : registry) = c->next;
  if (c->next != nullptr) c->next->previous = c->previous;
}

struct Detach {
  ~Detach() {
    ThreadCache* c = current;
    if (c == &not_attached || c == &detached) return;
    current = &detached;
    give_all_back(*c);
    {
      const std::lock_guard lock(registry_mutex);
      flush_counters(*c);
      unlink(c);
    }
    delete c;
  }
};

// This thread's cache; null when it is ending or has none.
ThreadCache* attached_cache() noexcept {
  if (current == &detached) return nullptr;
  if (current != &not_attached) return current;
  auto* c = new (std::nothrow) ThreadCache;
  if (c == nullptr) return nullptr;
  for (size_t k = 0; k < class_count; ++k) c->lists[k].room = list_limit(k);
  {
    const std::lock_guard lock(registry_mutex);
    forks.enlist();
    c->next = registry;
    if (registry != nullptr) registry->previous = c;
    registry = c;
  }
  current = c;
  static thread_local Detach at_exit;
  (void)at_exit;
  return c;
}

// ---- Large blocks -------------------------------------------------------------------------------

// Written into a block while it waits for reuse.
struct CachedBlock {
  CachedBlock* bin_next;
  CachedBlock* bin_previous;
  CachedBlock* newer;
  CachedBlock* older;
  size_t size;
  const ThreadCache* giver;  // that of the thread whose processor's caches may hold the block
};

// Rounds up to one of eight sizes for each power of two up to 64 MiB, then to a multiple of a huge
// page. Few sizes make reuse likely, and at most an eighth is wasted.
constexpr size_t large_block_size(size_t bytes) {
  const size_t step = std::min(std::bit_floor(bytes - 1) / 8, huge_page);
  return (bytes + step - 1) / step * step;
}
constexpr size_t bin_of(size_t size) {
  const int log2 = std::bit_width(size - 1);  // 17 or more
  return static_cast<size_t>(log2 - 17) * 8 + (((size - 1) >> (log2 - 4)) & 7);
}
constexpr size_t bin_count = bin_of(absurd_size) + 1;
static_assert(bin_of(small_limit + 1) == 0 && large_block_size(small_limit + 1) == 72 << 10);

class LargeCache {
 public:
  std::mutex mutex;

  // The block of this size that was given last, if possible by this thread: threads of a parallel
  // loop would else exchange their scratch memory, and fetch it from each other's caches.
  void* take(size_t size) noexcept {
    constexpr int most_looked_at = 16;
    const std::lock_guard lock(mutex);
    CachedBlock* found = nullptr;
    int seen = 0;
    for (CachedBlock* b = bins_[bin_of(size)]; b != nullptr; b = b->bin_next) {
      if (b->size != size) continue;
      if (found == nullptr || b->giver == current) found = b;
      if (b->giver == current || ++seen == most_looked_at) break;
    }
    if (found != nullptr) remove(found);
    return found;
  }

  void give(void* p, size_t size) noexcept {
    CachedBlock* surplus = nullptr;
    {
      const std::lock_guard lock(mutex);
      const size_t limit = cap_locked();
      if (size <= limit) {
        insert(new (p) CachedBlock{nullptr, nullptr, nullptr, newest_, size, current});
        surplus = shrink(limit);
        p = nullptr;
      }
    }
    if (p != nullptr) unmap_memory(p, size);
    unmap_chain(surplus);
  }

  void shrink_to(size_t limit) noexcept {
    CachedBlock* surplus = nullptr;
    {
      const std::lock_guard lock(mutex);
      surplus = shrink(limit);
    }
    unmap_chain(surplus);
  }

  void set_cap(size_t bytes) noexcept {
    {
      const std::lock_guard lock(mutex);
      cap_ = bytes;
    }
    shrink_to(bytes);
  }
  size_t cap() noexcept {
    const std::lock_guard lock(mutex);
    return cap_locked();
  }
  size_t cached() noexcept {
    const std::lock_guard lock(mutex);
    return cached_;
  }

 private:
  static constexpr size_t cap_unknown = ~size_t{0};

  size_t cap_locked() noexcept {
    if (cap_ == cap_unknown) cap_ = usable_memory() / 4;
    return cap_;
  }

  void insert(CachedBlock* b) noexcept {
    CachedBlock*& bin = bins_[bin_of(b->size)];
    b->bin_next = bin;
    if (bin != nullptr) bin->bin_previous = b;
    bin = b;
    (newest_ != nullptr ? newest_->newer : oldest_) = b;
    newest_ = b;
    cached_ += b->size;
  }

  void remove(CachedBlock* b) noexcept {
    (b->bin_previous != nullptr ? b->bin_previous->bin_next : bins_[bin_of(b->size)]) = b->bin_next;
    if (b->bin_next != nullptr) b->bin_next->bin_previous = b->bin_previous;
    (b->newer != nullptr ? b->newer->older : newest_) = b->older;
    (b->older != nullptr ? b->older->newer : oldest_) = b->newer;
    cached_ -= b->size;
  }

  // Removes the least recently used blocks; the caller unmaps the chain without holding the lock.
  CachedBlock* shrink(size_t limit) noexcept {
    CachedBlock* chain = nullptr;
    while (cached_ > limit) {
      CachedBlock* b = oldest_;
      remove(b);
      b->older = chain;
      chain = b;
    }
    return chain;
  }

  static void unmap_chain(CachedBlock* b) noexcept {
    while (b != nullptr) {
      CachedBlock* next = b->older;
      unmap_memory(b, b->size);
      b = next;
    }
  }

  std::array<CachedBlock*, bin_count> bins_{};
  CachedBlock* newest_ = nullptr;
  CachedBlock* oldest_ = nullptr;
  size_t cached_ = 0;
  size_t cap_ = cap_unknown;
};

constinit LargeCache large;

// ---- Fork ---------------------------------------------------------------------------------------

// A child has only the thread that forked, so all locks are held during the fork (core/fork.h).
void lock_all(ForkHandler&) {
  registry_mutex.lock();
  for (CentralList& list : central) list.mutex.lock();
  large.mutex.lock();
  lock_holders();
}

void unlock_all(ForkHandler&) {
  unlock_holders();
  large.mutex.unlock();
  for (CentralList& list : central) list.mutex.unlock();
  registry_mutex.unlock();
}

// In a child: another thread's free lists may have been in the middle of a change, so their few
// blocks are leaked. Their counts are still added up.
void forget_other_threads() {
  for (ThreadCache* c = registry; c != nullptr;) {
    ThreadCache* next = c->next;
    if (c != current) {
      flush_counters(*c);
      unlink(c);
    }
    c = next;
  }
}

constinit ForkHandler forks(ForkOrder::Memory, lock_all, unlock_all, [](ForkHandler& self) {
  forget_other_threads();
  unlock_all(self);
});

// ---- Slow paths ---------------------------------------------------------------------------------

// Calls `get`, and once more after emptying all caches if it finds no memory.
template <class F>
void* get_or_throw(size_t bytes, F get) {
  void* p = get();
  if (p != nullptr) return p;
  cpu_empty_cache();
  p = get();
  if (p == nullptr) throw_out_of_memory(bytes);
  return p;
}

void count_allocation(ThreadCache& c, int64_t size) {
  const int64_t now = c.allocated.get() + size;
  c.allocated.set(now);
  if (now > c.peak.get()) c.peak.set(now);
  c.allocations.add(1);
}

void count_free(ThreadCache& c, int64_t size) {
  c.allocated.add(-size);
  c.frees.add(1);
}

[[gnu::noinline]] void* allocate_from_central(size_t k) {
  ThreadCache* c = attached_cache();
  uint32_t got = 0;
  const uint32_t wanted = c != nullptr ? batch_size(k) : 1;
  auto* chain = static_cast<Block*>(
      get_or_throw(class_sizes[k], [&] { return central[k].take(k, wanted, got); }));
  if (c == nullptr) {
    count_block(class_sizes[k]);
    return chain;
  }
  flush_counters(*c);
  count_allocation(*c, class_sizes[k]);
  c->lists[k].head = chain->next;
  c->lists[k].room -= got - 1;
  return chain;
}

[[gnu::noinline]] void free_to_central(void* p, size_t k) noexcept {
  Block* b = new (p) Block{nullptr};
  ThreadCache* c = attached_cache();
  if (c == nullptr) {
    count_block(-static_cast<int64_t>(class_sizes[k]));
    central[k].give(b, b);
    return;
  }
  FreeList& list = c->lists[k];
  if (list.room == 0) give_back(*c, k, list_limit(k) / 2);
  b->next = list.head;
  list.head = b;
  --list.room;
  count_free(*c, class_sizes[k]);
  flush_counters(*c);
}

[[gnu::noinline]] void* allocate_large(size_t bytes) {
  if (bytes > absurd_size) throw_out_of_memory(bytes);
  ThreadCache* c = attached_cache();
  if (c != nullptr) flush_counters(*c);
  const size_t size = large_block_size(bytes);
  void* p = get_or_throw(bytes, [size] {
    void* cached = large.take(size);
    return cached != nullptr ? cached : map_memory(size);
  });
  count_block(static_cast<int64_t>(size));
  note_block(p, bytes);
  return p;
}

[[gnu::noinline]] void free_large(void* p, size_t bytes) noexcept {
  const size_t size = large_block_size(bytes);
  count_block(-static_cast<int64_t>(size));
  forget_block(p);
  large.give(p, size);
}

}  // namespace

// ---- The interface ------------------------------------------------------------------------------

void* cpu_allocate(size_t bytes) {
#if FACULA_FENCED
  if (fences_on()) return allocate_fenced(bytes);
#endif
  if (bytes - 1 >= small_limit) [[unlikely]]  // 0 wraps around
    return bytes == 0 ? nullptr : allocate_large(bytes);
  const size_t k = size_class(bytes);
  ThreadCache& c = *current;
  Block* b = c.lists[k].head;
  if (b == nullptr) [[unlikely]]
    return allocate_from_central(k);
  c.lists[k].head = b->next;
  ++c.lists[k].room;
  count_allocation(c, class_sizes[k]);
  return b;
}

void cpu_free(void* p, size_t bytes) noexcept {
  if (p == nullptr) return;
#if FACULA_FENCED
  if (fences_on()) return free_fenced(p, bytes);
#endif
  if (bytes - 1 >= small_limit) [[unlikely]]
    return free_large(p, bytes);
  const size_t k = size_class(bytes);
  ThreadCache& c = *current;
  FreeList& list = c.lists[k];
  if (list.room == 0) [[unlikely]]
    return free_to_central(p, k);
  list.head = new (p) Block{list.head};
  --list.room;
  count_free(c, class_sizes[k]);
}

void cpu_empty_cache() {
  if (ThreadCache* c = attached_cache()) give_all_back(*c);
  for (CentralList& list : central) list.release_idle_chunks();
  large.shrink_to(0);
}

void set_cpu_memory_cap(size_t bytes) { large.set_cap(std::min(bytes, absurd_size)); }
size_t cpu_memory_cap() { return large.cap(); }

MemoryStats cpu_memory_stats() {
  MemoryStats s;
  s.allocations = totals.allocations.load(std::memory_order_relaxed);
  s.frees = totals.frees.load(std::memory_order_relaxed);
  s.allocated = totals.allocated.now();
  int64_t highest = s.allocated;
  {
    const std::lock_guard lock(registry_mutex);
    for (const ThreadCache* c = registry; c != nullptr; c = c->next) {
      s.allocated += c->allocated.get();
      highest += c->peak.get();
      s.allocations += c->allocations.get();
      s.frees += c->frees.get();
    }
  }
  s.peak_allocated = std::max({highest, s.allocated, totals.allocated.peak()});
  s.reserved = totals.reserved.now();
  s.peak_reserved = totals.reserved.peak();
  s.cached = static_cast<int64_t>(large.cached());
  s.system_allocations = totals.system_allocations.load(std::memory_order_relaxed);
  return s;
}

void cpu_reset_peak_memory_stats() {
  if (ThreadCache* own = attached_cache()) flush_counters(*own);
  const std::lock_guard lock(registry_mutex);
  for (ThreadCache* c = registry; c != nullptr; c = c->next) c->peak.set(c->allocated.get());
  totals.allocated.reset_peak();
  totals.reserved.reset_peak();
}

#endif

}  // namespace facula
