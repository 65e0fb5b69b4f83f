#include "autograd/workers.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "autograd/engine.h"

namespace facula {

constinit std::atomic<const ThreadHooks*> thread_hooks{nullptr};

void CarriedError::take() {
  error_ = std::current_exception();
  if (const ThreadHooks* h = thread_hooks.load(std::memory_order_acquire)) above_ = h->take_error();
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

thread_local Device served;

class Worker {
 public:
  explicit Worker(Device device) {
    std::thread([this, device] { serve(device); }).detach();
  }
  void add(std::function<void()> job) {
    {
      const std::lock_guard guard(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
  }

 private:
  void serve(Device device) {
    served = device;
    const ThreadScope scope;
    while (true) {
      std::unique_lock guard(mutex_);
      wake_.wait(guard, [this] { return !jobs_.empty(); });
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      guard.unlock();
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
};

}  // namespace

void run_on_worker(Device device, std::function<void()> job) {
  // Never destroyed: workers outlive every static object.
  static auto* mutex = new std::mutex;
  static auto* workers = new std::map<std::pair<int, int>, Worker*>;
  Worker* worker;
  {
    const std::lock_guard guard(*mutex);
    Worker*& there = (*workers)[{static_cast<int>(device.type), device.index}];
    if (!there) there = new Worker(device);
    worker = there;
  }
  worker->add(std::move(job));
}

Device worker_device() { return served; }

void run_on_fresh_thread(const std::function<void()>& work) {
  const ThreadState state = thread_state;
  const auto saved = saved_tensor_state();
  CarriedError error;
  std::thread([&] {
    const ThreadScope scope;
    thread_state = state;
    set_saved_tensor_state(saved);
    try {
      work();
    } catch (...) {
      error.take();
    }
    set_saved_tensor_state(nullptr);
  }).join();
  if (error.any()) error.rethrow();
}

}  // namespace facula
