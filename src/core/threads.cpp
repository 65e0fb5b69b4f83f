#include "core/threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "core/cgroup.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/interrupts.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace facula {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int max_threads = 1024;
constexpr auto spin_limit = microseconds(50);
// A longer gap means a preempted thread: schedulers take a processor away for milliseconds, while
// interrupts and a virtual machine's host take tens of microseconds many times a second.
constexpr auto preemption_gap = microseconds(500);
constexpr auto spin_ban = milliseconds(50);

[[gnu::tls_model("initial-exec")]] constinit thread_local bool inside_region = false;

// ---- Operating system ---------------------------------------------------------------------

// Sleeps while `word` is `expected`; may return early.
void sleep_while(std::atomic<uint32_t>& word, uint32_t expected) {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#else
  word.wait(expected);
#endif
}

void wake(std::atomic<uint32_t>& word, int count) {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
#else
  for (; count > 0; --count) word.notify_one();
#endif
}

void pause_briefly() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Rounding mode and handling of denormals. Workers use the caller's, so that the result does not
// depend on the thread that runs a chunk.
#if defined(__SSE2__)
uint64_t float_mode() {
  constexpr unsigned sticky_flags = 0x3f;
  return _mm_getcsr() & ~sticky_flags;
}
void set_float_mode(uint64_t mode) {
  if (float_mode() != mode) _mm_setcsr(static_cast<unsigned>(mode));
}
#elif defined(__aarch64__)
uint64_t float_mode() {
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void set_float_mode(uint64_t mode) {
  if (float_mode() != mode) asm volatile("msr fpcr, %0" : : "r"(mode));
}
#else
uint64_t float_mode() { return 0; }
void set_float_mode(uint64_t) {}
#endif

#if defined(__linux__)
int current_cpu() { return sched_getcpu(); }

// Bars a thread (0: this one) from processor `cpu` if it may run on others; returns whether it did,
// and where the thread could run before.
bool keep_off(pid_t thread, int cpu, cpu_set_t& before) {
  if (sched_getaffinity(thread, sizeof before, &before) != 0 || CPU_COUNT(&before) < 2)
    return false;
  cpu_set_t others = before;
  CPU_CLR(cpu, &others);
  return sched_setaffinity(thread, sizeof others, &others) == 0;
}

// Moves this thread off processor `cpu` if it may run on others, and then restores its affinity.
void move_off(int cpu) {
  cpu_set_t allowed;
  if (keep_off(0, cpu, allowed)) sched_setaffinity(0, sizeof allowed, &allowed);
}

// Where a worker sleeps. Linux often wakes a thread where it slept, though that is the processor of
// the thread that wakes it and others idle; it then waits for milliseconds. So the caller bars a
// worker that sleeps on its own processor from it, and the worker lifts that when it is awake.
class Bed {
 public:
  void lie_down() {
    thread_.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
    cpu_.store(current_cpu(), std::memory_order_release);
  }
  void get_up() {
    cpu_.store(-1, std::memory_order_relaxed);
    if (barred_.load(std::memory_order_acquire)) {
      sched_setaffinity(0, sizeof before_, &before_);
      barred_.store(false, std::memory_order_release);
    }
  }
  // For the caller, before it wakes workers.
  void keep_off_caller(int cpu) {
    if (cpu < 0 || cpu_.load(std::memory_order_acquire) != cpu) return;
    if (barred_.load(std::memory_order_acquire)) return;
    if (keep_off(thread_.load(std::memory_order_relaxed), cpu, before_))
      barred_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<pid_t> thread_{0};
  std::atomic<int> cpu_{-1};
  std::atomic<bool> barred_{false};
  cpu_set_t before_;  // written by the caller while barred_ is false, else read by the worker
};
#else
int current_cpu() { return -1; }
void move_off(int) {}
struct Bed {
  void lie_down() {}
  void get_up() {}
  void keep_off_caller(int) {}
};
#endif

int default_num_threads() {
  const char* wish = environment_value("OMP_NUM_THREADS");
  const long n = wish != nullptr ? std::strtol(wish, nullptr, 10) : 0;
  return n > 0 ? static_cast<int>(std::min<long>(n, max_threads)) : usable_cpus();
}

// ---- One parallel loop
// ----------------------------------------------------------------------------

struct Job {
  detail::ChunkFunction function = nullptr;
  void* context = nullptr;
  int64_t n = 0;
  int64_t grain = 1;
  int64_t chunks = 0;
  uint64_t mode = 0;

  void run(int64_t chunk) const {
    const int64_t begin = chunk * grain;
    function(context, begin, begin + std::min(grain, n - begin));
  }
};

// The exception of the lowest chunk.
class FirstFailure {
 public:
  void record(int64_t chunk, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (chunk_.load(std::memory_order_relaxed) < chunk) return;
    chunk_.store(chunk, std::memory_order_relaxed);
    error_ = std::move(error);
  }
  // Whether a lower chunk failed, so that this one can be skipped.
  bool before(int64_t chunk) const { return chunk_.load(std::memory_order_relaxed) < chunk; }
  std::exception_ptr take() {
    chunk_.store(INT64_MAX, std::memory_order_relaxed);
    return std::exchange(error_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::atomic<int64_t> chunk_{INT64_MAX};
  std::exception_ptr error_;
};

// The chunk that this thread is running, for checking whether it is still needed.
class RunningChunk {
 public:
  RunningChunk(const FirstFailure& failure, int64_t chunk)
      : failure_(failure), chunk_(chunk), outer_(innermost) {
    innermost = this;
  }
  ~RunningChunk() { innermost = outer_; }
  RunningChunk(const RunningChunk&) = delete;
  static bool is_lost() { return innermost && innermost->failure_.before(innermost->chunk_); }

 private:
  static thread_local constinit const RunningChunk* innermost
      __attribute__((tls_model("initial-exec")));
  const FirstFailure& failure_;
  const int64_t chunk_;
  const RunningChunk* const outer_;
};
thread_local constinit const RunningChunk* RunningChunk::innermost = nullptr;

// Thrown on a worker to end its chunk, because an earlier chunk has failed.
struct LostChunk {};
void leave_lost_chunk() {
  if (RunningChunk::is_lost()) throw LostChunk();
}

// The chunks of a job, which threads claim one by one. Each thread begins with its own share of
// consecutive chunks, so that it works on the same memory in every call and finds it in its caches;
// when it is done it takes chunks of others.
class Shares {
 public:
  void deal(int64_t chunks, int shares) {
    count_ = std::min(shares, most);
    for (int k = 0; k < count_; ++k) {
      shares_[k].next.store(chunks * k / count_, std::memory_order_relaxed);
      shares_[k].end = chunks * (k + 1) / count_;
    }
  }
  // Calls run(chunk) for unclaimed chunks, beginning with those of share `own`.
  template <class F>
  void claim(int own, F run) {
    for (int k = 0; k < count_; ++k) {
      Share& s = shares_[(own + k) % count_];
      for (;;) {
        const int64_t chunk = s.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= s.end) break;
        run(chunk);
      }
    }
  }

 private:
  static constexpr int most = 64;
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  Share shares_[most];
  int count_ = 0;
};

class RegionGuard {
 public:
  RegionGuard() { inside_region = true; }
  ~RegionGuard() { inside_region = false; }
};

// Decides whether waiting threads spin. Spinning only helps while each spinning thread has a
// processor to itself. A gap between two readings of the clock shows that it was preempted; then no
// thread spins for a while.
class SpinPolicy {
 public:
  // Spins until done() returns true or the time is over; returns whether it is done.
  template <class F>
  bool spin_until(F done) {
    Clock::time_point last = Clock::now();
    if (last.time_since_epoch().count() < banned_until_.load(std::memory_order_relaxed))
      return done();
    const Clock::time_point end = last + spin_limit;
    for (;;) {
      for (int i = 0; i < 16; ++i) {
        if (done()) return true;
        pause_briefly();
      }
      const Clock::time_point now = Clock::now();
      if (now - last > preemption_gap) ban(now);
      if (now >= end || now - last > preemption_gap) return done();
      last = now;
    }
  }

 private:
  void ban(Clock::time_point now) {
    banned_until_.store((now + spin_ban).time_since_epoch().count(), std::memory_order_relaxed);
  }

  std::atomic<Clock::rep> banned_until_{0};
};

// ---- The pool -----------------------------------------------------------------------------------

// Runs one loop at a time. `gate_` admits workers to it: the low bits count the workers inside, the
// high bit says that it is closed. A worker that comes late finds the gate closed and does not
// touch the job, so the caller only waits for workers that are inside.
class Pool {
 public:
  // Returns whether the caller now owns the pool.
  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  void run(const Job& job, int threads) {
    const auto helpers =
        static_cast<uint32_t>(std::min<int64_t>(grow_to(threads - 1), job.chunks - 1));
    may_spin_.store(threads <= processors_, std::memory_order_relaxed);
    job_ = job;
    limit_ = helpers;
    const int cpu = current_cpu();
    caller_cpu_.store(cpu, std::memory_order_relaxed);
    shares_.deal(job.chunks, static_cast<int>(helpers) + 1);
    gate_.store(0, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    wake_sleepers(static_cast<int>(helpers), cpu);
    run_chunks(0);
    wait_for_workers();
    if (std::exception_ptr error = failure_.take()) std::rethrow_exception(std::move(error));
  }

  // Measures the time until a sleeping worker begins to run: the median of a few tries.
  nanoseconds measure_wake_cost() {
    std::array<nanoseconds, 5> times;
    for (nanoseconds& t : times) t = time_one_wake();
    std::nth_element(times.begin(), times.begin() + 2, times.end());
    return times[2];
  }

 private:
  static constexpr uint32_t shut = uint32_t{1} << 31;

  // Starts workers until there are `wanted`. Returns their number, which is smaller if the system
  // refuses.
  int grow_to(int wanted) {
    if (workers_ >= wanted) return wanted;
    // Blocks all signals, so that the program's own threads receive them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (workers_ < wanted && start_worker()) ++workers_;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return std::min(workers_, wanted);
  }

  bool start_worker() noexcept {
    try {
      std::thread([this, seen = epoch_.load(), number = workers_] { work(seen, number); }).detach();
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  // Wakes sleeping workers; those that are awake notice the new epoch themselves.
  void wake_sleepers(int wanted, int cpu) {
    const int sleepers = sleepers_.load(std::memory_order_seq_cst);
    const int awake = workers_ - sleepers;
    if (wanted <= awake) return;
    for (int i = 0; i < std::min<int>(workers_, std::size(beds_)); ++i)
      beds_[i].keep_off_caller(cpu);
    wake(epoch_, wanted - awake);
  }

  void work(uint32_t seen, int number) {
#if defined(__linux__)
    pthread_setname_np(pthread_self(), "facula");
#endif
    inside_region = true;
    interrupts.ask = leave_lost_chunk;
    Clock::time_point moved;
    for (;;) {
      seen = wait_for_epoch(seen, number);
      keep_off_caller(moved);
      const int share = enter();
      if (share == 0) continue;
      set_float_mode(job_.mode);
      run_chunks(share);
      leave();
    }
  }

  uint32_t wait_for_epoch(uint32_t seen, int number) {
    const auto changed = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
    const bool spin = may_spin_.load(std::memory_order_relaxed);
    if (!(spin && spins_.spin_until(changed))) {
      Bed* bed = number < static_cast<int>(std::size(beds_)) ? &beds_[number] : nullptr;
      if (bed != nullptr) bed->lie_down();
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      while (!changed()) sleep_while(epoch_, seen);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
      if (bed != nullptr) bed->get_up();
    }
    return epoch_.load(std::memory_order_acquire);
  }

  // The kernel often wakes a worker on the caller's processor, where the two would take turns for
  // tens of milliseconds while other processors idle. Moves the worker off, but not too often,
  // since that is useless when all processors are busy.
  void keep_off_caller(Clock::time_point& moved) {
    const int cpu = current_cpu();
    if (cpu < 0 || cpu != caller_cpu_.load(std::memory_order_relaxed)) return;
    const Clock::time_point now = Clock::now();
    if (now - moved < milliseconds(1)) return;
    moved = now;
    move_off(cpu);
  }

  // Enters the gate and returns this thread's number, where the caller is 0; 0 if it may not enter.
  int enter() {
    uint32_t gate = gate_.load(std::memory_order_acquire);
    while ((gate & shut) == 0) {
      // If this succeeds the gate is open. It may already be that of the next job, which is then
      // completely visible; at worst one worker more than wanted takes part.
      if (gate >= limit_.load(std::memory_order_relaxed)) return 0;
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire))
        return static_cast<int>(gate) + 1;
    }
    return 0;
  }

  void leave() {
    // The last worker to leave a closed gate wakes the caller, which may be sleeping.
    if (gate_.fetch_sub(1, std::memory_order_acq_rel) == shut + 1) wake(gate_, 1);
  }

  void wait_for_workers() {
    gate_.fetch_or(shut, std::memory_order_acq_rel);
    const auto empty = [&] { return gate_.load(std::memory_order_acquire) == shut; };
    if (empty()) return;
    if (may_spin_.load(std::memory_order_relaxed) && spins_.spin_until(empty)) return;
    for (;;) {
      const uint32_t gate = gate_.load(std::memory_order_acquire);
      if (gate == shut) return;
      sleep_while(gate_, gate);
    }
  }

  // Runs all chunks before a failed one. The caller, whose share is the first, checks for
  // interrupts; an interrupt ends the whole loop.
  void run_chunks(int share) noexcept {
    shares_.claim(share, [this, share](int64_t chunk) {
      if (failure_.before(chunk)) return;
      try {
        const RunningChunk running(failure_, chunk);
        job_.run(chunk);
        if (share == 0) poll_interrupts();
      } catch (const LostChunk&) {
      } catch (const Error& e) {
        constexpr int64_t before_all = -1;  // kernels call no Python, so this is an interrupt
        failure_.record(e.kind() == ErrorKind::Python ? before_all : chunk,
                        std::current_exception());
      } catch (...) {
        failure_.record(chunk, std::current_exception());
      }
    });
  }

  // Lets all workers fall asleep, then runs two chunks, of which the caller's waits for the
  // worker's.
  nanoseconds time_one_wake() {
    struct Handshake {
      std::thread::id caller = std::this_thread::get_id();
      std::atomic<Clock::rep> begun{0};
    } shake;
    const auto body = [](void* context, int64_t, int64_t) {
      auto& s = *static_cast<Handshake*>(context);
      if (std::this_thread::get_id() != s.caller) {
        s.begun.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
        return;
      }
      const Clock::time_point give_up = Clock::now() + microseconds(200);
      while (s.begun.load(std::memory_order_relaxed) == 0 && Clock::now() < give_up)
        pause_briefly();
    };
    const Clock::time_point ready = Clock::now() + microseconds(300);
    while (sleepers_.load(std::memory_order_relaxed) == 0 && Clock::now() < ready)
      std::this_thread::yield();
    const Clock::time_point start = Clock::now();
    run({body, &shake, 2, 1, 2, float_mode()}, 2);
    const Clock::rep begun = shake.begun.load(std::memory_order_relaxed);
    const Clock::rep end = begun != 0 ? begun : Clock::now().time_since_epoch().count();
    return nanoseconds(std::max<Clock::rep>(0, end - start.time_since_epoch().count()));
  }

  std::atomic<bool> busy_{false};
  int workers_ = 0;
  const int processors_ = usable_cpus();
  std::atomic<bool> may_spin_{true};
  SpinPolicy spins_;
  FirstFailure failure_;
  Job job_;
  std::atomic<uint32_t> limit_{0};
  std::atomic<int> caller_cpu_{-1};
  Bed beds_[64];  // of the first workers
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<uint32_t> gate_{shut};
  Shares shares_;
};

// ---- The one pool -------------------------------------------------------------------------------

constexpr int64_t default_wake_ns = 10'000;

constinit std::atomic<int> thread_count{0};  // 0: not determined yet
constinit std::atomic<int64_t> wake_ns{default_wake_ns};
constinit std::atomic<Pool*> pool{nullptr};
// Set while the pool is made. It is a flag and not a mutex so that a forked child can reset it.
constinit std::atomic<bool> making_pool{false};

// Threads do not survive a fork, so the child leaks the pool and makes a new one when it needs it.
void forget_pool(ForkHandler&) {
  pool.store(nullptr, std::memory_order_relaxed);
  making_pool.store(false, std::memory_order_relaxed);
  inside_region = false;
}
constinit ForkHandler forks(ForkOrder::Threads, nullptr, nullptr, forget_pool);

void measure(Pool& p) {
  const int64_t ns = p.measure_wake_cost().count();
  wake_ns.store(std::clamp<int64_t>(ns, 2'000, 50'000), std::memory_order_relaxed);
}

// Acquires the pool for the caller; null if another thread is using it.
Pool* acquire_pool() {
  Pool* p = pool.load(std::memory_order_acquire);
  if (p != nullptr) return p->try_acquire() ? p : nullptr;
  if (making_pool.exchange(true, std::memory_order_acquire)) return nullptr;
  forks.enlist();
  p = new (std::nothrow) Pool;  // never deleted, since its workers outlive static objects
  if (p == nullptr) {
    making_pool.store(false, std::memory_order_release);
    return nullptr;
  }
  p->try_acquire();
  measure(*p);
  pool.store(p, std::memory_order_release);
  return p;
}

void run_serially(const Job& job) {
  for (int64_t chunk = 0; chunk < job.chunks; ++chunk) {
    job.run(chunk);
    poll_interrupts();
  }
}

}  // namespace

int num_threads() {
  int n = thread_count.load(std::memory_order_relaxed);
  if (n != 0) return n;
  thread_count.compare_exchange_strong(n, default_num_threads(), std::memory_order_relaxed);
  return thread_count.load(std::memory_order_relaxed);
}

void set_num_threads(int n) {
  check(n > 0, "set_num_threads(): expected a positive number of threads; got ", n);
  thread_count.store(n, std::memory_order_relaxed);
}

bool in_parallel_region() { return inside_region; }

int64_t parallel_grain(int64_t tenth_ns) {
  // A second thread saves half of the time, so the loop must take twice the cost of waking it.
  const int64_t budget = 2 * 10 * wake_ns.load(std::memory_order_relaxed);
  return std::max<int64_t>(1, budget / std::max<int64_t>(1, tenth_ns));
}

void detail::run_chunks(int64_t n, int64_t grain, ChunkFunction function, void* context) {
  grain = std::max<int64_t>(grain, 1);
  const Job job{function, context, n, grain, (n - 1) / grain + 1, float_mode()};
  const int threads = std::min(num_threads(), max_threads);
  Pool* p = threads > 1 && !inside_region && job.chunks > 1 ? acquire_pool() : nullptr;
  if (p == nullptr) return run_serially(job);
  const RegionGuard region;
  struct Release {
    Pool* pool;
    ~Release() { pool->release(); }
  } release{p};
  p->run(job, threads);
}

}  // namespace facula
