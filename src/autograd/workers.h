// Threads of the engine: one worker per device, and new threads for deep recursion.
#pragma once
#include <exception>
#include <functional>
#include <utility>

#include "core/device.h"

namespace facula {

// Queues a job for the device's worker thread; jobs must not throw.
void run_on_worker(Device device, std::function<void()> job);
// The device of which this thread is the worker; the CPU for other threads.
Device worker_device();
// Held while a worker waits for other threads: another thread then runs the jobs of its device,
// since two workers that wait for each other would deadlock. Does nothing on other threads.
class WorkerWaits {
 public:
  WorkerWaits();
  ~WorkerWaits();
  WorkerWaits(const WorkerWaits&) = delete;
};
// Runs `work` on a new thread with this thread's state and waits for it; rethrows its exception.
void run_on_fresh_thread(const std::function<void()>& work);

// An exception that is passed from one thread to another, with the Python error that is set.
class CarriedError {
 public:
  CarriedError() = default;
  CarriedError(CarriedError&& o) noexcept { swap(o); }
  CarriedError& operator=(CarriedError&& o) noexcept {
    swap(o);
    return *this;
  }
  ~CarriedError();
  // Stores the current exception; called in a catch block.
  void take();
  bool any() const { return static_cast<bool>(error_); }
  [[noreturn]] void rethrow();

 private:
  void swap(CarriedError& o) noexcept {
    std::swap(error_, o.error_);
    std::swap(above_, o.above_);
  }
  std::exception_ptr error_;
  void* above_ = nullptr;
};

}  // namespace facula
