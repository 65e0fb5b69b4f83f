#include "autograd/workers.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "autograd/engine.h"
#include "autograd/inherited_state.h"
#include "core/fork.h"

namespace facula {

constinit std::atomic<const ThreadHooks*> thread_hooks{nullptr};

void CarriedError::take() {
  error_ = std::current_exception();
  if (const ThreadHooks* h = thread_hooks.load(std::memory_order_acquire)) above_ = h->take_error();
}

CarriedError::~CarriedError() {
  if (above_) thread_hooks.load(std::memory_order_acquire)->drop_error(above_);
}

void CarriedError::rethrow() {
  if (above_)
    thread_hooks.load(std::memory_order_acquire)->set_error(std::exchange(above_, nullptr));
  std::rethrow_exception(std::exchange(error_, nullptr));
}

namespace {

struct ThreadScope {
  const ThreadHooks* hooks = thread_hooks.load(std::memory_order_acquire);
  void* token = hooks ? hooks->enter() : nullptr;
  ~ThreadScope() {
    if (hooks) hooks->leave(token);
  }
};

// The threads of one device. Only one of them runs jobs at a time: when it waits for other threads
// (WorkerWaits), another takes its place, and idles again afterwards.
class Worker {
 public:
  explicit Worker(Device device) : device_(device) {}
  Device device() const { return device_; }
  void add(std::function<void()> job) {
    const std::lock_guard guard(mutex_);
    jobs_.push_back(std::move(job));
    if (active_ > 0) return wake_.notify_one();
    try {
      activate();
    } catch (...) {  // the system refused to make a thread
      jobs_.pop_back();
      throw;
    }
  }
  void begin_wait() {
    const std::lock_guard guard(mutex_);
    if (--active_ == 0 && !jobs_.empty()) activate();
  }
  void end_wait() {
    const std::lock_guard guard(mutex_);
    ++active_;
  }

 private:
  void activate() {
    if (parked_ > called_) {
      ++called_;
      unpark_.notify_one();
    } else {
      std::thread([this] { serve(); }).detach();
    }
    ++active_;
  }
  void serve();

  const Device device_;
  std::mutex mutex_;
  std::condition_variable wake_, unpark_;
  std::deque<std::function<void()>> jobs_;
  int active_ = 0, parked_ = 0, called_ = 0;
};

thread_local constinit Worker* own_worker = nullptr;

void Worker::serve() {
  own_worker = this;
  const ThreadScope scope;
  const uint32_t generation = fork_generation();
  std::unique_lock guard(mutex_);
  while (true) {
    if (active_ > 1) {
      --active_;
      ++parked_;
      unpark_.wait(guard, [this] { return called_ > 0; });
      --called_;
      --parked_;
    }
    wake_.wait(guard, [this] { return !jobs_.empty(); });
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    guard.unlock();
    job();
    job = nullptr;  // after unlocking, since it may hold the last reference to a pass
    if (generation != fork_generation()) return;  // a hook has forked, and this is the child
    guard.lock();
  }
}

// Never destroyed, since worker threads outlive static objects.
struct Workers {
  using Map = std::map<std::pair<int, int>, Worker*>;
  ForkSafeMutex mutex{ForkOrder::Engine};
  Map* of = new Map;
};
Workers& workers() {
  static auto* all = new Workers;
  return *all;
}

// Threads do not survive a fork: the child leaks these workers and starts its own.
constinit ForkHandler forks(ForkOrder::Engine, nullptr, nullptr, [](ForkHandler&) {
  workers().of = new Workers::Map;
  own_worker = nullptr;
});

}  // namespace

void run_on_worker(Device device, std::function<void()> job) {
  forks.enlist();
  Worker* worker;
  {
    const std::lock_guard guard(workers().mutex);
    Worker*& there = (*workers().of)[{static_cast<int>(device.type), device.index}];
    if (!there) there = new Worker(device);
    worker = there;
  }
  worker->add(std::move(job));
}

Device worker_device() { return own_worker ? own_worker->device() : Device(); }

WorkerWaits::WorkerWaits() {
  if (own_worker) own_worker->begin_wait();
}
WorkerWaits::~WorkerWaits() {
  if (own_worker) own_worker->end_wait();
}

void run_on_fresh_thread(const std::function<void()>& work) {
  const InheritedState state;
  CarriedError error;
  const WorkerWaits waits;
  std::thread([&] {
    const ThreadScope scope;
    const InheritedState::Scope inherited(state);
    try {
      work();
    } catch (...) {
      error.take();
    }
  }).join();
  if (error.any()) error.rethrow();
}

}  // namespace facula
