// Memory that the ranks of a group on one machine share, and how they wait for each other in it.
//
// It is an anonymous file (memfd) of rank 0, which others open through /proc: nothing is left
// behind when processes are killed, and the limit of /dev/shm does not apply. Ranks that are
// threads of one process map it several times.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "distributed/deadlock.h"
#include "distributed/engine.h"

namespace facula::distributed {

enum class RankState : uint32_t { Absent, Present, Left, Failed };

// What all ranks can read of one. The first line is written at each step, the rest seldom.
struct alignas(64) RankBlock {
  std::atomic<uint32_t> arrived;      // rounds of collectives that it has come to
  std::atomic<uint32_t> state;        // RankState
  std::atomic<int64_t> beat_ms;       // when it last gave a sign of life
  std::atomic<int64_t> in_python_ms;  // since when it has been in no call; 0 while it is in one
  int32_t process;
  std::atomic<int32_t> thread;     // that makes all calls; 0 if several do
  std::atomic<uint32_t> doorbell;  // futex; rung when something has changed and a thread sleeps
  std::atomic<uint32_t> sleepers;
  // Calls with an even and an odd number: a rank begins a call only when all have read its last but
  // one.
  alignas(64) CallRecord calls[2];
  alignas(64) CallRecord message;  // the message that it waits for, or Call::None
  std::atomic<uint32_t> error_length;
  char error[3 * 1024];
};

struct alignas(64) ArenaHeader {
  std::atomic<uint64_t> key;
  std::atomic<uint32_t> broken;  // 1 while a rank writes the error below, 2 when it is there
  std::atomic<uint32_t> error_length;
  char error[8 * 1024];
};

// The head of a stream of bytes from one rank to another; its ring of bytes follows.
struct alignas(64) Channel {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};

class Arena {
 public:
  explicit Arena(const EngineOptions& options);
  ~Arena();
  Arena(const Arena&) = delete;

  std::string address();
  bool connect(const std::vector<std::string>& addresses);

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const EngineOptions& options() const { return options_; }
  RankBlock& block(int rank) const { return blocks_[rank]; }
  bool has_left(int rank) const {
    return block(rank).state.load(std::memory_order_acquire) ==
           static_cast<uint32_t>(RankState::Left);
  }
  RankBlock& mine() const { return blocks_[rank()]; }
  // Memory of `rank` for rounds with even and odd numbers.
  std::byte* slot(int rank, uint32_t round) const {
    return slots_ + (static_cast<size_t>(rank) * 2 + (round & 1)) * slot_bytes_;
  }
  size_t slot_bytes() const { return slot_bytes_; }
  Channel& channel(int from, int to) const {
    const size_t i = static_cast<size_t>(from) * static_cast<size_t>(size());
    return *reinterpret_cast<Channel*>(channels_ + (i + static_cast<size_t>(to)) * channel_bytes_);
  }
  size_t channel_capacity() const { return channel_bytes_ - sizeof(Channel); }

  // Wake threads that sleep. Called after a change that they may wait for.
  void ring(int rank);
  void ring_all();
  // Waits until ready() is true; throws when that can never be, when the timeout has passed or the
  // user interrupts. `awaited` says which ranks are waited for, `call` what for.
  template <class Ready, class Awaited>
  void wait(const CallRecord& call, Ready&& ready, Awaited&& awaited) {
    if (spin(ready)) return;
    Patience patience{clock_now(), false, {}};
    while (!sleep_until_rung(ready)) look_around(call, awaited, patience);
  }

  // The same for a thread that nobody waits for: it gives no errors, and leaves them to others.
  template <class Ready>
  void wait_quietly(Ready&& ready) {
    while (!sleep_until_rung(ready)) beat();
  }

  void beat();
  // Throws the error that some rank has put down.
  void check_broken() const;
  bool is_broken() const { return header_->broken.load(std::memory_order_acquire) != 0; }
  // Puts an error down for all ranks, unless there is one, and throws what is there then.
  [[noreturn]] void fail(const std::string& text);
  void put_error(const std::string& text);
  void leave(const std::string& error);
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ms_ = timeout.count(); }
  void abort() { aborted_.store(true, std::memory_order_relaxed); }
  // One line for each rank: what it does.
  std::string table() const;
  // Notes that a thread of this rank calls.
  void note_thread(int32_t thread);
  // Adds what each rank of the group waits for.
  void add_waits(std::vector<Wait>& waits);
  std::string text_of_wait(const Wait& wait);
  // The number of the group's memory, the same at all ranks.
  uint64_t key() const { return header_->key.load(); }

 private:
  struct Patience {
    int64_t since;
    bool told;  // that ranks lag
    CircleWatch circle;
  };
  static int64_t clock_now();
  static int64_t clock_us();
  static void pause();
  static void yield();
  // Short, since on a busy machine each yield may take a whole slice of the scheduler.
  template <class Ready>
  bool spin(Ready&& ready) const {
    for (int i = 0; i < spins_; ++i) {
      if (ready()) return true;
      pause();
    }
    if (yield_us_ == 0) return ready();
    const int64_t end = clock_us() + yield_us_;
    do {
      if (ready()) return true;
      yield();
    } while (clock_us() < end);
    return false;
  }
  template <class Ready>
  bool sleep_until_rung(Ready&& ready) const {
    mine().sleepers.fetch_add(1);
    const uint32_t before = mine().doorbell.load();
    const bool done = ready();
    if (!done) sleep_while(before);
    mine().sleepers.fetch_sub(1);
    return done || ready();
  }
  void sleep_while(uint32_t doorbell) const;
  // Called about every 50 ms of a wait.
  void look_around(const CallRecord& call, const std::function<std::vector<int>()>& awaited,
                   Patience& patience);
  void check_ranks(const CallRecord& call, const std::vector<int>& missing,
                   const std::function<std::vector<int>()>& awaited);
  void tell_of_lag(const CallRecord& call, const std::vector<int>& missing, int64_t waited) const;
  [[noreturn]] void fail_late(const CallRecord& call, const std::vector<int>& missing);
  std::string line(int rank) const;
  CallRecord last_call(int rank) const;
  void add_message_wait(int rank, std::vector<Wait>& waits);
  void add_collective_wait(int rank, std::vector<Wait>& waits);
  bool is_behind(int other, int rank);
  bool map(int descriptor);
  void watch_processes();
  bool has_died(int rank) const;

  const EngineOptions options_;
  size_t bytes_ = 0, slot_bytes_ = 0, channel_bytes_ = 0;
  std::byte* memory_ = nullptr;
  int descriptor_ = -1;
  ArenaHeader* header_ = nullptr;
  RankBlock* blocks_ = nullptr;
  std::byte* slots_ = nullptr;
  std::byte* channels_ = nullptr;
  std::vector<int> process_descriptors_;
  std::atomic<int64_t> timeout_ms_;
  std::atomic<bool> aborted_{false};
  int spins_ = 0;
  int64_t yield_us_ = 0;
  std::atomic<bool> has_called_{false};
};

}  // namespace facula::distributed
