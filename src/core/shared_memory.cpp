#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "core/fork.h"

namespace facula {

namespace {

// Lies at the end of each segment, shared by all processes.
struct Counters {
  std::atomic<int64_t> messages;  // sent and not yet received
  std::atomic<int64_t> mappings;  // processes that have it mapped for storages
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

constexpr size_t unit = 64, page = 4096, small_segment = size_t{1} << 20;
constexpr size_t most_kept = 64;  // segments kept for reuse

size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }

struct Segment {
  uint64_t number = 0;
  std::string name;
  int descriptor = -1;
  char* base = nullptr;
  size_t bytes = 0;
  size_t used = 0;
  int64_t storages = 0;     // of this process
  uint32_t generation = 0;  // fork generation of the process that made it; 0 if mapped from another

  size_t room() const { return bytes - unit - used; }
  Counters& counters() const { return *reinterpret_cast<Counters*>(base + bytes - unit); }
};

// The context of a shared storage's memory: its segment, and the storage's former memory.
struct Place {
  Segment* segment;
  size_t offset;
  Ref<Storage> before;  // kept because an array or buffer has its address
};

void count_for_child(ForkHandler&);

struct Segments {
  ForkSafeMutex mutex{ForkOrder::SharedMemory};
  ForkHandler forks{ForkOrder::SharedMemory, count_for_child, nullptr, nullptr};
  std::vector<Segment*> all;      // with storages in this process
  std::vector<Segment*> waiting;  // made here, kept for receivers of messages or for reuse
  std::vector<Segment*> idle;     // received, kept mapped for the next message
  bool keep = false;
  Segment* open[2] = {};    // whose rest is for the next small blocks: anonymous, named
  uint32_t generation = 0;  // of the process that began what waits
};
Segments& segments() {
  static auto* s = new Segments;
  return *s;
}

[[noreturn]] void system_failed(const char* what, size_t bytes) {
  const int error = errno;
  throw Error(ErrorKind::Runtime, "shared memory: ", what, " of ", bytes,
              " bytes failed: ", std::strerror(error), " (", error, ")");
}

// In a child: counts it as a user of all segments in which its parent has storages.
void count_for_child(ForkHandler&) {
  for (const Segment* s : segments().all) s->counters().mappings.fetch_add(1);
}

// Called when this process's last storage in the segment is gone.
void end_use(const Segment& s) {
  const bool last = s.counters().mappings.fetch_sub(1) == 1;
  if (last && !s.name.empty() && s.counters().messages.load() <= 0) shm_unlink(s.name.c_str());
}

void unmap(Segment* s) {
  munmap(s->base, s->bytes);
  if (s->descriptor >= 0) close(s->descriptor);
  delete s;
}

bool worth_keeping(const Segments& all, const Segment& s) {
  return all.keep && s.name.empty() && s.bytes > small_segment;
}

// Closes segments that were kept for receivers who have mapped them since. A child forgets what its
// parent sent.
void close_received(Segments& all) {
  const bool inherited = all.generation != fork_generation();
  all.generation = fork_generation();
  std::erase_if(all.waiting, [&](Segment* s) {
    if (!inherited && s->counters().messages.load() > 0) return false;
    if (!inherited && worth_keeping(all, *s) && all.waiting.size() <= most_kept) return false;
    unmap(s);
    return true;
  });
  std::erase_if(all.idle, [&](Segment* s) {
    if (!inherited && all.keep && all.idle.size() <= most_kept) return false;
    unmap(s);
    return true;
  });
}

void let_go(Segments& all, Segment* s) {
  if (--s->storages) return;
  close_received(all);
  std::erase(all.all, s);
  for (Segment*& open : all.open)
    if (open == s) open = nullptr;
  end_use(*s);
  const bool ours = s->generation == fork_generation();
  if (s->name.empty() && (s->counters().messages.load() > 0 || (ours && worth_keeping(all, *s))))
    all.waiting.push_back(s);
  else if (!s->generation && worth_keeping(all, *s))
    all.idle.push_back(s);
  else
    unmap(s);
}

void let_go_of_place(void* context) {
  auto* place = static_cast<Place*>(context);
  Segments& all = segments();
  {
    const std::lock_guard guard(all.mutex);
    let_go(all, place->segment);
  }
  delete place;
}

void map_segment(Segment& s, bool populate) {
  void* p = mmap(nullptr, s.bytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | (populate ? MAP_POPULATE : 0), s.descriptor, 0);
  if (p == MAP_FAILED) system_failed("mmap", s.bytes);
  s.base = static_cast<char*>(p);
}

// Undoes the making of a segment if a later step fails.
struct Unfinished {
  Segment* segment;
  ~Unfinished() {
    if (!segment) return;
    if (segment->descriptor >= 0) close(segment->descriptor);
    if (segment->generation && !segment->name.empty()) shm_unlink(segment->name.c_str());
    delete segment;
  }
  Segment* finish() { return std::exchange(segment, nullptr); }
};

void open_new(Segment& s, const std::string& prefix) {
  if (getrandom(&s.number, sizeof s.number, 0) != sizeof s.number)
    system_failed("getrandom", sizeof s.number);
  if (prefix.empty()) {
    s.descriptor = memfd_create("facula", MFD_CLOEXEC);
    if (s.descriptor < 0) system_failed("memfd_create", s.bytes);
  } else {
    s.name = concat(prefix, "_", s.number);
    s.descriptor = shm_open(s.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (s.descriptor < 0) system_failed("shm_open", s.bytes);
  }
  if (ftruncate(s.descriptor, static_cast<off_t>(s.bytes))) system_failed("ftruncate", s.bytes);
}

// Reserves pages of /dev/shm, which is limited in size: running out raises an error here, while it
// would be a SIGBUS when the pages are written.
void reserve(const Segment& s, size_t offset, size_t bytes) {
  if (s.name.empty()) return;
  if (const int error = posix_fallocate(s.descriptor, static_cast<off_t>(offset),
                                        static_cast<off_t>(std::max<size_t>(bytes, 1)))) {
    errno = error;
    system_failed("allocation in /dev/shm", bytes);
  }
}

Segment* new_segment(Segments& all, size_t bytes, const std::string& prefix) {
  // The size doubles with every 32 segments, so that their number stays small.
  const auto doublings = std::min<size_t>(all.all.size() / 32, 20);
  const size_t room = std::max(rounded(bytes, unit), small_segment << doublings);
  Unfinished made{new Segment};
  made.segment->bytes = rounded(room + unit, page);
  made.segment->generation = fork_generation();
  open_new(*made.segment, prefix);
  reserve(*made.segment, made.segment->bytes - unit, unit);
  map_segment(*made.segment, false);
  new (&made.segment->counters()) Counters{};
  made.segment->counters().mappings.store(1);
  all.forks.enlist();
  all.all.push_back(made.segment);
  return made.finish();
}

// An unused segment of this process that is large enough but not much too large.
Segment* find_unused(Segments& all, size_t taken) {
  const auto unused = [&](const Segment* s) {
    return s->generation == fork_generation() && s->name.empty() &&
           s->counters().messages.load() <= 0 && s->counters().mappings.load() == 0 &&
           s->bytes > small_segment && s->bytes >= taken + unit && s->bytes / 2 <= taken;
  };
  const auto at = std::find_if(all.waiting.begin(), all.waiting.end(), unused);
  if (at == all.waiting.end()) return nullptr;
  Segment* s = *at;
  all.waiting.erase(at);
  all.all.push_back(s);
  s->counters().mappings.store(1);
  s->used = 0;
  return s;
}

// A new block, which is zeroed unless `used` allows old contents. The caller holds the lock.
Place* new_block(Segments& all, size_t bytes, const std::string& prefix, bool used) {
  Segment*& open = all.open[prefix.empty() ? 0 : 1];
  const size_t taken = std::max(rounded(bytes, unit), unit);
  Segment* s = used && prefix.empty() ? find_unused(all, taken) : nullptr;
  if (!s) s = open;
  if (!s || s->generation != fork_generation() || s->room() < taken) {
    s = new_segment(all, taken, prefix);
    if (!open || open->generation != fork_generation() || s->room() > open->room()) open = s;
  }
  const size_t offset = s->used;
  ++s->storages;
  auto* place = new Place{s, offset, {}};
  try {
    reserve(*s, offset, taken);
  } catch (...) {
    delete place;
    let_go(all, s);
    throw;
  }
  s->used += taken;
  return place;
}

char* address(const Place& p) { return p.segment->base + p.offset; }

// Copies bytes into a block. New pages are written through the descriptor, which saves the kernel
// from zeroing them first.
void write_block(const Place& place, const void* from, size_t bytes) {
  constexpr size_t worthwhile = size_t{1} << 16;
  size_t done = 0;
  while (bytes >= worthwhile && done < bytes) {
    const ssize_t n = pwrite(place.segment->descriptor, static_cast<const char*>(from) + done,
                             bytes - done, static_cast<off_t>(place.offset + done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (done < bytes)
    std::memcpy(address(place) + done, static_cast<const char*>(from) + done, bytes - done);
}

Segment* find_segment(const Segments& all, uint64_t number) {
  for (const auto* list : {&all.all, &all.waiting, &all.idle})
    for (Segment* s : *list)
      if (s->number == number) return s;
  return nullptr;
}

Segment* open_segment(const SharedBlock& b, const std::string& path) {
  Unfinished made{new Segment};
  Segment& s = *made.segment;
  s.number = b.segment;
  s.name = b.name;
  s.bytes = b.segment_bytes;
  if (!s.name.empty())
    s.descriptor = shm_open(s.name.c_str(), O_RDWR | O_CLOEXEC, 0600);
  else if (!path.empty())
    s.descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  else
    s.descriptor = fcntl(b.descriptor, F_DUPFD_CLOEXEC, 0);
  if (s.descriptor < 0) {
    const int error = errno;
    throw Error(ErrorKind::Runtime, "shared memory: ", s.name.empty() ? path : s.name,
                " cannot be opened: ", std::strerror(error), " (", error,
                "); the process that sent the tensor must live until it is received");
  }
  struct stat found{};
  check(fstat(s.descriptor, &found) == 0 && static_cast<size_t>(found.st_size) == s.bytes,
        "shared memory: expected a segment of ", s.bytes, " bytes; got ", found.st_size);
  map_segment(s, s.bytes > small_segment);
  if (!s.name.empty()) close(std::exchange(s.descriptor, -1));
  return made.finish();
}

const Place& place_of(const Storage& s) {
  const void* context = s.context_of(let_go_of_place);
  check(context != nullptr, "shared memory: the storage is not shared; share_memory_() shares it");
  return *static_cast<const Place*>(context);
}

}  // namespace

Ref<Storage> new_shared_storage(size_t bytes, const std::string& prefix) {
  Segments& all = segments();
  const std::lock_guard guard(all.mutex);
  Place* place = new_block(all, bytes, prefix, false);
  return Storage::external({}, address(*place), bytes, place, let_go_of_place);
}

void share_storage(Storage& s, const std::string& prefix) {
  if (is_shared(s)) return;
  check(s.device().is_cpu(), "share_memory_(): expected a storage on the CPU; got one on ",
        str(s.device()));
  Place* place;
  {
    Segments& all = segments();
    const std::lock_guard guard(all.mutex);
    place = new_block(all, s.nbytes(), prefix, true);
    if (s.nbytes() && s.has_memory()) write_block(*place, s.data(), s.nbytes());
  }
  // Arrays and buffers may use the old address for an unknown time, so the old memory is kept.
  const bool seen = s.address_is_known();
  Ref<Storage> before = s.exchange_memory(address(*place), place, let_go_of_place);
  if (seen) place->before = std::move(before);
}

bool is_shared(const Storage& s) { return s.context_of(let_go_of_place) != nullptr; }

SharedBlock shared_block(const Storage& s) {
  const Place& place = place_of(s);
  const Segment& in = *place.segment;
  return {in.number, in.name, in.descriptor, in.bytes, place.offset};
}

void begin_shared_message(const Storage& s) {
  place_of(s).segment->counters().messages.fetch_add(1);
}

Ref<Storage> map_shared_storage(const SharedBlock& block, const std::string& path, size_t bytes,
                                bool ends_message) {
  Segments& all = segments();
  const std::lock_guard guard(all.mutex);
  const size_t most = block.segment_bytes;
  check(most >= page && most % page == 0 && block.offset % unit == 0 && block.offset < most &&
            bytes <= most - unit - block.offset,
        "shared memory: expected a block within a segment of ", most, " bytes; got ", bytes,
        " bytes at ", block.offset);
  Segment* s = find_segment(all, block.segment);
  if (!s)
    s = open_segment(block, path);
  else
    check(s->bytes == most, "shared memory: expected a segment of ", s->bytes, " bytes; got ",
          most);
  if (++s->storages == 1) {
    s->counters().mappings.fetch_add(1);
    std::erase(all.waiting, s);
    std::erase(all.idle, s);
    all.all.push_back(s);
    all.forks.enlist();
  }
  if (ends_message) s->counters().messages.fetch_sub(1);
  auto* place = new Place{s, block.offset, {}};
  return Storage::external({}, address(*place), bytes, place, let_go_of_place);
}

void let_go_of_shared_names() {
  Segments& all = segments();
  const std::lock_guard guard(all.mutex);
  for (const Segment* s : all.all)
    if (!s->name.empty()) end_use(*s);
}

void keep_shared_segments(bool keep) {
  Segments& all = segments();
  const std::lock_guard guard(all.mutex);
  all.keep = keep;
  close_received(all);
}

SharedMemoryStats shared_memory_stats() {
  Segments& all = segments();
  const std::lock_guard guard(all.mutex);
  close_received(all);
  SharedMemoryStats stats;
  stats.segments = static_cast<int64_t>(all.all.size() + all.waiting.size() + all.idle.size());
  stats.waiting = static_cast<int64_t>(all.waiting.size());
  for (const auto* list : {&all.all, &all.waiting, &all.idle})
    for (const Segment* s : *list) {
      stats.descriptors += s->descriptor >= 0;
      stats.blocks += s->storages;
    }
  return stats;
}

}  // namespace facula
