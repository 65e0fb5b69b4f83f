#include "dispatch/running_calls.h"

#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/fork.h"

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace facula {

constinit std::atomic<int> unlocked_threads{0};
std::atomic<const InterpreterLock*> interpreter_lock{nullptr};

// The calls that one thread runs, innermost first.
struct ThreadCalls {
  std::atomic<RunningCall*> top{nullptr};
  bool waits = false;  // for a change; under the mutex
};

namespace {

// --- order between a store of one thread and a load of it

// A listed call first says that it is there and then looks for changes; a change does it the other
// way round. Between the two steps each needs a barrier, of which the system can make one for all
// threads at once: then calls, which are many, need none.
#if defined(__linux__) && defined(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && !defined(__SANITIZE_THREAD__)
bool barrier_everywhere() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}
bool barriers_are_ready() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
         barrier_everywhere();
}
#else
bool barrier_everywhere() { return false; }
bool barriers_are_ready() { return false; }
#endif

// Calls make barriers of their own, because the system has none for all threads.
constinit std::atomic<bool> calls_make_barriers{true};

void show(ThreadCalls& thread, RunningCall* top) {
  if (calls_make_barriers.load(std::memory_order_relaxed)) {
    thread.top.exchange(top, std::memory_order_seq_cst);
    return;
  }
  thread.top.store(top, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// --- all threads that have listed a call, and all changes

constinit std::atomic<int> changes{0};

struct Register {
  std::mutex mutex;
  std::condition_variable moved;  // a call that a change may wait for has ended, or a change has
  std::vector<ThreadCalls*> threads;
  TensorChange* changes = nullptr;
};
// Never destroyed: threads outlive static objects. Made anew in a forked child.
constinit Register* kept = nullptr;

thread_local constinit ThreadCalls* here __attribute__((tls_model("initial-exec"))) = nullptr;

void forget_other_threads(ForkHandler&) {
  kept = new Register;
  if (here) kept->threads.push_back(here);
  changes.store(0, std::memory_order_relaxed);
}
constinit ForkHandler forks(
    ForkOrder::Threads, [](ForkHandler&) { kept->mutex.lock(); },
    [](ForkHandler&) { kept->mutex.unlock(); }, forget_other_threads);

Register& all() {
  static std::once_flag once;
  std::call_once(once, [] {
    kept = new Register;
    calls_make_barriers.store(!barriers_are_ready());
    forks.enlist();
  });
  return *kept;
}

// Takes this thread off the list when it ends.
struct Membership {
  ThreadCalls calls;
  Membership() {
    Register& r = all();
    const std::lock_guard lock(r.mutex);
    r.threads.push_back(&calls);
    here = &calls;
  }
  ~Membership() {
    Register& r = all();
    const std::lock_guard lock(r.mutex);
    std::erase(r.threads, &calls);
    here = nullptr;
  }
};

ThreadCalls& this_thread() {
  if (here) return *here;
  thread_local Membership membership;
  return membership.calls;
}

}  // namespace

WithoutInterpreter::WithoutInterpreter() : lock_(interpreter_lock.load(std::memory_order_acquire)) {
  if (lock_) state_ = lock_->let_go();
}
WithoutInterpreter::~WithoutInterpreter() {
  if (state_) lock_->take_back(state_);
}

// --- calls

void RunningCall::enter() {
  ThreadCalls& thread = this_thread();
  below_ = thread.top.load(std::memory_order_relaxed);
  thread_ = &thread;
  show(thread, this);
  if (changes.load(std::memory_order_seq_cst) > 0) [[unlikely]]
    wait();
}

void RunningCall::leave() {
  show(*thread_, below_);
  if (changes.load(std::memory_order_seq_cst) == 0) [[likely]]
    return;
  // A change that looks at this call has seen it to the end before the call is gone.
  Register& r = all();
  const std::lock_guard lock(r.mutex);
  r.moved.notify_all();
}

// A change that has begun lets no call in. One that still waits lets those in that run inside of
// others, for which it may be waiting.
bool RunningCall::must_wait() const {
  for (const TensorChange* c = all().changes; c; c = c->next_)
    if (c->thread_ != thread_ && c->concerns(*this, thread_) && (c->granted_ || !below_))
      return true;
  return false;
}

void RunningCall::wait() {
  Register& r = all();
  {
    const std::lock_guard lock(r.mutex);
    if (!must_wait()) return;
    thread_->top.store(below_, std::memory_order_relaxed);
    r.moved.notify_all();
  }
  const WithoutInterpreter out;
  std::unique_lock lock(r.mutex);
  r.moved.wait(lock, [this] { return !must_wait(); });
  thread_->top.store(this, std::memory_order_relaxed);
}

// --- changes

// Whether a change of another thread is under way, so that the reader may not look at the tensor.
bool TensorChange::is_changed(const TensorImpl* t, const ThreadCalls* reader) {
  for (const TensorChange* c = all().changes; c; c = c->next_)
    if (c->granted_ && c->tensor_ == t && c->thread_ != reader) return true;
  return false;
}

bool TensorChange::concerns(const Storage* s) const {
  return s && (s == storage_ || s == of_tensor_);
}

bool TensorChange::concerns(const Value& v, const ThreadCalls* reader) const {
  const auto uses = [&](const TensorImpl* t) {
    return t && (t == tensor_ || is_changed(t, reader) || concerns(t->storage.get()));
  };
  switch (v.tag) {
    case Tag::Tensor:
      return uses(v.tensor);
    case Tag::TensorList:
      for (const Tensor& t : v.as_tensors())
        if (uses(t.get())) return true;
      return false;
    case Tag::Storage:
      return concerns(v.storage);
    default:
      return false;
  }
}

bool TensorChange::concerns(const RunningCall& c, const ThreadCalls* reader) const {
  for (int i = 0; i < c.count_; ++i)
    if (concerns(c.args_[i], reader)) return true;
  return false;
}

bool TensorChange::meets(const TensorChange& other) const {
  return concerns(other.storage_) || concerns(other.of_tensor_);
}

TensorChange::Way TensorChange::look() {
  if (tensor_) {
    if (is_changed(tensor_, thread_)) return Way::Blocked;
    of_tensor_ = tensor_->storage.get();
  }
  for (const TensorChange* c = all().changes; c; c = c->next_)
    if (c->thread_ != thread_ && c->granted_ && meets(*c)) return Way::Blocked;
  for (const ThreadCalls* t : all().threads) {
    if (t == thread_) continue;
    for (const RunningCall* c = t->top.load(std::memory_order_acquire); c; c = c->below_) {
      if (!concerns(*c, thread_)) continue;
      const bool both_wait = t->waits && thread_->top.load(std::memory_order_relaxed);
      return both_wait ? Way::Never : Way::Blocked;
    }
  }
  return Way::Free;
}

void TensorChange::begin() {
  // Before the register's lock, for which holders of the interpreter's lock wait.
  if (const InterpreterLock* l = interpreter_lock.load(std::memory_order_acquire))
    took_interpreter_ = l->take();
  Register& r = all();
  std::unique_lock lock(r.mutex, std::defer_lock);
  thread_ = &this_thread();
  lock.lock();
  next_ = std::exchange(r.changes, this);
  changes.fetch_add(1, std::memory_order_seq_cst);
  if (!calls_make_barriers.load(std::memory_order_relaxed)) barrier_everywhere();
  Way way = look();
  if (way == Way::Blocked) {
    lock.unlock();
    const WithoutInterpreter out;
    lock.lock();
    thread_->waits = true;
    r.moved.wait(lock, [&] { return (way = look()) != Way::Blocked; });
    thread_->waits = false;
    granted_ = way == Way::Free;
    lock.unlock();
  } else {
    granted_ = way == Way::Free;
    lock.unlock();
  }
  if (granted_) return;
  end();
  throw Error(ErrorKind::Runtime,
              "two threads change the memory or sizes of the same tensor at once, each from inside "
              "of a call that uses it");
}

void TensorChange::end() {
  {
    Register& r = all();
    const std::lock_guard lock(r.mutex);
    TensorChange** at = &r.changes;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
    changes.fetch_sub(1, std::memory_order_seq_cst);
    r.moved.notify_all();
  }
  if (took_interpreter_) interpreter_lock.load(std::memory_order_acquire)->give();
}

}  // namespace facula
