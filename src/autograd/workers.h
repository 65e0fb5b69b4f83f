// Threads of the engine: one worker per device, and fresh ones for deep recursion.
#pragma once
#include <exception>
#include <functional>
#include <utility>

#include "core/device.h"

namespace facula {

// Runs a job on the device's worker; jobs must not throw.
void run_on_worker(Device device, std::function<void()> job);
// The device whose worker this thread is; the CPU for any other thread.
Device worker_device();
// While a worker waits for other threads: one more thread takes jobs of its device, or two workers
// that wait for each other would do so for ever. Nothing on other threads.
class WorkerWaits {
 public:
  WorkerWaits();
  ~WorkerWaits();
  WorkerWaits(const WorkerWaits&) = delete;
};
// Runs `work` on a thread of its own with this thread's state, and waits; what it throws is thrown
// here.
void run_on_fresh_thread(const std::function<void()>& work);

// An exception on its way from one thread to another, with the error that the language above has
// set.
class CarriedError {
 public:
  CarriedError() = default;
  CarriedError(CarriedError&& o) noexcept { swap(o); }
  CarriedError& operator=(CarriedError&& o) noexcept {
    swap(o);
    return *this;
  }
  ~CarriedError();
  // In a catch block: takes the exception.
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
