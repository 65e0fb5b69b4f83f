#include "distributed/arena.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/interrupts.h"
#include "core/threads.h"
#include "distributed/call_text.h"

namespace facula::distributed {
namespace {

size_t rounded(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// More ranks than processors: whoever spins keeps another from coming, and each meeting costs
// changes of the processor's process.
bool is_crowded(int size) {
  static const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  return size > processors;
}

// Small enough that what ranks hand to each other stays in the caches, large enough for few
// meetings.
size_t slot_bytes_for(int size) {
  return std::clamp<size_t>((size_t{4} << 20) / static_cast<size_t>(size), 64 * 1024, 512 * 1024);
}

// Ids of processes mean something only to processes that see the same ones.
std::string machine() {
  char text[128] = {};
  const ssize_t n = readlink("/proc/self/ns/pid", text, sizeof text - 1);
  std::string name(text, n > 0 ? static_cast<size_t>(n) : 0);
  if (FILE* f = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (std::fgets(text, sizeof text, f)) name += std::string(text, std::strcspn(text, "\n"));
    std::fclose(f);
  }
  return name;
}

// The system gives only the pages that are used.
size_t channel_bytes_for(int size) {
  const auto n = static_cast<size_t>(size);
  return std::clamp<size_t>((size_t{64} << 20) / (n * n) / 4096 * 4096, 64 * 1024, 1024 * 1024);
}

void write_text(char* to, size_t room, std::atomic<uint32_t>& length, const std::string& text) {
  const size_t n = std::min(room, text.size());
  std::memcpy(to, text.data(), n);
  length.store(static_cast<uint32_t>(n), std::memory_order_release);
}

std::string read_text(const char* from, size_t room, const std::atomic<uint32_t>& length) {
  return {from, std::min<size_t>(room, length.load(std::memory_order_acquire))};
}

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string seconds(int64_t ms) { return concat(ms / 1000, ".", ms % 1000 / 100, " s"); }

}  // namespace

int64_t Arena::clock_now() { return clock_ms(); }

int64_t Arena::clock_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

void Arena::pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void Arena::yield() { sched_yield(); }

Arena::Arena(const EngineOptions& options)
    : options_(options), timeout_ms_(options.timeout.count()) {
  const auto n = static_cast<size_t>(options.size);
  slot_bytes_ = slot_bytes_for(options.size);
  channel_bytes_ = channel_bytes_for(options.size);
  bytes_ = rounded(sizeof(ArenaHeader)) + rounded(n * sizeof(RankBlock)) +
           rounded(n * 2 * slot_bytes_) + n * n * channel_bytes_;
  const bool crowded = is_crowded(options.size);
  spins_ = options.size == 1 || crowded ? 0 : 2000;
  yield_us_ = crowded ? 0 : 20;
}

Arena::~Arena() {
  forget_arena(this);
  for (const int d : process_descriptors_)
    if (d >= 0) close(d);
  if (memory_) munmap(memory_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

bool Arena::map(int descriptor) {
  void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (p == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(p);
  const auto n = static_cast<size_t>(size());
  std::byte* at = memory_;
  header_ = reinterpret_cast<ArenaHeader*>(at);
  at += rounded(sizeof(ArenaHeader));
  blocks_ = reinterpret_cast<RankBlock*>(at);
  at += rounded(n * sizeof(RankBlock));
  slots_ = at;
  at += rounded(n * 2 * slot_bytes_);
  channels_ = at;
  return true;
}

// "machine process descriptor key"; the last two are of use from rank 0 only.
std::string Arena::address() {
  uint64_t key = 0;
  if (rank() == 0) {
    descriptor_ = memfd_create("facula_process_group", MFD_CLOEXEC);
    const bool made = descriptor_ >= 0 && ftruncate(descriptor_, static_cast<off_t>(bytes_)) == 0 &&
                      map(descriptor_);
    check(made, "init_process_group(): the system gave no shared memory of ", bytes_,
          " bytes: ", std::strerror(errno));
    check(getrandom(&key, sizeof key, 0) == sizeof key,
          "init_process_group(): the system gave no random number");
    header_->key.store(key);
  }
  return concat(machine(), " ", getpid(), " ", descriptor_, " ", key);
}

bool Arena::connect(const std::vector<std::string>& addresses) {
  check_value(addresses.size() == static_cast<size_t>(size()), "connect(): expected ", size(),
              " addresses; got ", addresses.size());
  char place[96] = {};
  int process = 0, descriptor = -1;
  unsigned long long key = 0;
  if (std::sscanf(addresses[0].c_str(), "%95s %d %d %llu", place, &process, &descriptor, &key) != 4)
    return false;
  if (machine() != place) return false;
  if (memory_ == nullptr) {
    const std::string path = concat("/proc/", process, "/fd/", descriptor);
    descriptor_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ < 0 || lseek(descriptor_, 0, SEEK_END) != static_cast<off_t>(bytes_) ||
        !map(descriptor_) || header_->key.load() != key)
      return false;
  }
  for (const std::string& a : addresses) {
    int other = 0;
    char where[96] = {};
    if (std::sscanf(a.c_str(), "%95s %d", where, &other) != 2 || machine() != where) return false;
    const long d = other == getpid() ? -1 : syscall(SYS_pidfd_open, other, 0);
    process_descriptors_.push_back(static_cast<int>(d));
  }
  mine().process = getpid();
  mine().thread = gettid();
  note_arena(this);
  mine().in_python_ms.store(clock_ms());
  beat();
  mine().state.store(static_cast<uint32_t>(RankState::Present));
  return true;
}

void Arena::ring(int rank) {
  // With the fetch_add of a sleeper, both sequentially consistent: either it sees the change, or it
  // is seen here.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  RankBlock& b = block(rank);
  if (b.sleepers.load() == 0) return;
  b.doorbell.fetch_add(1);
  syscall(SYS_futex, &b.doorbell, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void Arena::ring_all() {
  for (int r = 0; r < size(); ++r) ring(r);
}

void Arena::sleep_while(uint32_t doorbell) const {
  const timespec most{0, 50'000'000};
  syscall(SYS_futex, &mine().doorbell, FUTEX_WAIT, doorbell, &most, nullptr, 0);
}

void Arena::beat() { mine().beat_ms.store(clock_ms(), std::memory_order_relaxed); }

void Arena::check_broken() const {
  if (!is_broken()) return;
  while (header_->broken.load(std::memory_order_acquire) == 1) yield();
  throw DistributedError(read_text(header_->error, sizeof header_->error, header_->error_length));
}

void Arena::put_error(const std::string& text) {
  uint32_t none = 0;
  if (!header_->broken.compare_exchange_strong(none, 1)) return;
  write_text(header_->error, sizeof header_->error, header_->error_length, text);
  header_->broken.store(2, std::memory_order_release);
  ring_all();
}

void Arena::fail(const std::string& text) {
  put_error(text);
  check_broken();
  throw DistributedError(text);
}

void Arena::leave(const std::string& error) {
  if (memory_ == nullptr) return;
  if (!error.empty()) write_text(mine().error, sizeof mine().error, mine().error_length, error);
  mine().state.store(static_cast<uint32_t>(error.empty() ? RankState::Left : RankState::Failed));
  ring_all();
}

bool Arena::has_died(int rank) const {
  const int d = process_descriptors_[static_cast<size_t>(rank)];
  pollfd p{d, POLLIN, 0};
  return d >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLIN) != 0;
}

void Arena::look_around(const CallRecord& call, const std::function<std::vector<int>()>& awaited,
                        Patience& patience) {
  beat();
  check_broken();
  if (aborted_.load(std::memory_order_relaxed))
    fail(concat("group '", options_.group, "': rank ", rank(), " aborted it in ", text_of(call)));
  const std::vector<int> missing = awaited();
  check_ranks(call, missing, awaited);
  const int64_t waited = clock_ms() - patience.since;
  if (waited >= timeout_ms_.load()) fail_late(call, missing);
  patience.circle.look(gettid(), waited);
  check_broken();
  if (!patience.told && waited >= options_.lag.count()) {
    patience.told = true;
    tell_of_lag(call, missing, waited);
  }
  try {
    poll_interrupts();
  } catch (...) {
    put_error(concat("group '", options_.group, "': the user interrupted rank ", rank(), " in ",
                     text_of(call)));
    throw;
  }
}

void Arena::check_ranks(const CallRecord& call, const std::vector<int>& missing,
                        const std::function<std::vector<int>()>& awaited) {
  for (int r = 0; r < size(); ++r) {
    const RankBlock& b = block(r);
    const bool died = r != rank() && has_died(r);  // asked first: it may leave and end at once
    const auto state = static_cast<RankState>(b.state.load(std::memory_order_acquire));
    const std::string where =
        concat("group '", options_.group, "': rank ", rank(), " waited in ", text_of(call), "; ");
    if (state == RankState::Failed)
      fail(concat(where, "rank ", r, " ended with an error:\n",
                  read_text(b.error, sizeof b.error, b.error_length)));
    if (state == RankState::Left) {
      // It may have left between our look at the list and this one.
      if (contains(missing, r)) fail(concat(where, "rank ", r, " has left the group\n", table()));
      continue;
    }
    if (died)
      fail(concat(where, "rank ", r, " is lost: its process ", b.process, " has ended\n", table()));
    const int64_t silence = clock_ms() - b.beat_ms.load(std::memory_order_relaxed);
    if (state == RankState::Present && r != rank() && silence > options_.heartbeat.count())
      fail(concat(where, "rank ", r, " is lost: its process ", b.process,
                  " has given no sign of life for ", seconds(silence), "\n", table()));
  }
}

void Arena::tell_of_lag(const CallRecord& call, const std::vector<int>& missing,
                        int64_t waited) const {
  std::string text = concat("facula.distributed: rank ", rank(), " has waited ", seconds(waited),
                            " in ", text_of(call), " for");
  for (const int r : missing) text += concat("\n  ", line(r));
  std::fprintf(stderr, "%s\n", text.c_str());
}

void Arena::fail_late(const CallRecord& call, const std::vector<int>& missing) {
  std::string names;
  for (const int r : missing) names += concat(names.empty() ? "" : ", ", r);
  fail(concat("group '", options_.group, "': rank ", rank(), " timed out after ",
              seconds(timeout_ms_.load()), " in ", text_of(call), ", waiting for rank ", names,
              "\n", table()));
}

CallRecord Arena::last_call(int r) const {
  const RankBlock& b = block(r);
  return b.calls[0].sequence > b.calls[1].sequence ? b.calls[0] : b.calls[1];
}

// A group may be made by one thread and used by another; but not by several, if one is to know
// which of them will make the next call.
void Arena::note_thread(int32_t thread) {
  std::atomic<int32_t>& known = mine().thread;
  if (known.load(std::memory_order_relaxed) == thread &&
      has_called_.load(std::memory_order_relaxed))
    return;
  const bool first = !has_called_.exchange(true);
  if (known.load(std::memory_order_relaxed) != thread) known.store(first ? thread : 0);
}

void Arena::add_waits(std::vector<Wait>& waits) {
  for (int r = 0; r < size(); ++r) {
    add_message_wait(r, waits);
    add_collective_wait(r, waits);
  }
}

void Arena::add_message_wait(int r, std::vector<Wait>& waits) {
  const CallRecord message = block(r).message;
  const int other = message.root;
  if (message.call == Call::None || other < 0 || other >= size()) return;
  const Channel &out = channel(r, other), &back = channel(other, r);
  const uint64_t moved = out.written + out.read + back.written + back.read;
  Wait wait;
  wait.thread = message.thread;
  wait.awaited = {block(other).thread.load()};
  wait.stamp = static_cast<uint64_t>(message.started_ms) ^ moved << 20;
  wait.group = this;
  wait.rank = r;
  wait.is_message = true;
  waits.push_back(std::move(wait));
}

void Arena::add_collective_wait(int r, std::vector<Wait>& waits) {
  const CallRecord call = last_call(r);
  if (call.sequence == 0 || call.finished || call.async) return;
  Wait wait;
  for (int other = 0; other < size(); ++other)
    if (is_behind(other, r)) wait.awaited.push_back(block(other).thread.load());
  if (wait.awaited.empty()) return;
  wait.thread = call.thread;
  wait.stamp = call.sequence;
  wait.group = this;
  wait.rank = r;
  waits.push_back(std::move(wait));
}

// Whether a rank has not come where rank r is.
bool Arena::is_behind(int other, int r) {
  return static_cast<int32_t>(block(other).arrived.load() - block(r).arrived.load()) < 0;
}

std::string Arena::text_of_wait(const Wait& wait) {
  const std::string who = concat("rank ", wait.rank, " in group '", options_.group, "' waits in ");
  if (wait.is_message) return concat(who, text_of(block(wait.rank).message));
  std::string names;
  for (int other = 0; other < size(); ++other)
    if (is_behind(other, wait.rank)) names += concat(names.empty() ? "" : ", ", other);
  return concat(who, text_of(last_call(wait.rank)), " for rank ", names);
}

std::string Arena::line(int r) const {
  const RankBlock& b = block(r);
  const CallRecord message = b.message;
  const CallRecord last = last_call(r);
  const std::string who = concat("rank ", r, ": ");
  const int64_t now = clock_ms(), idle = b.in_python_ms.load(std::memory_order_relaxed);
  switch (static_cast<RankState>(b.state.load())) {
    case RankState::Absent:
      return who + "has not joined";
    case RankState::Left:
      return who + "has left";
    case RankState::Failed:
      return who + "ended with an error";
    case RankState::Present:
      break;
  }
  if (message.call != Call::None)
    return concat(who, "waits for ", seconds(now - message.started_ms), " in ", text_of(message));
  if (last.sequence == 0) return who + "has made no call";
  if (!last.finished)
    return concat(who, "for ", seconds(now - last.started_ms), " in collective ", last.sequence,
                  ", ", text_of(last));
  return concat(who, "in no call for ", seconds(now - idle), "; its last was collective ",
                last.sequence, ", ", text_of(last));
}

std::string Arena::table() const {
  std::string text;
  for (int r = 0; r < size(); ++r) text += concat(r ? "\n  " : "  ", line(r));
  return text;
}

}  // namespace facula::distributed
