// A process group: the order of its calls, and what is under way.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/storage.h"
#include "distributed/engine.h"

namespace facula::distributed {

class ProcessGroup;

// A call that is under way. Shared by the caller and the thread that runs it.
class Work {
 public:
  Work(ProcessGroup& group, Collective call, std::vector<Ref<Storage>> memory)
      : call_(std::move(call)), memory_(std::move(memory)), group_(group) {}

  bool is_completed();
  // Waits until the call has ended; throws its error. A timeout of 0 is that of the group. Throws
  // DistributedError when it has passed, with the call still under way.
  void wait(std::chrono::milliseconds timeout);
  std::exception_ptr error();
  int source() const { return source_; }  // of a message, once it is there
  const CallRecord& record() const { return call_.record; }
  // Calls `f` when the call has ended, on the thread that ends it; at once if it has.
  void then(std::function<void()> f);

 private:
  friend class ProcessGroup;
  void run() noexcept;
  void end(std::exception_ptr error) noexcept;
  void finish_message();
  void wait_for_message(std::chrono::milliseconds timeout);
  bool wait_for_stream(std::chrono::milliseconds timeout);
  bool is_message() const { return message_ != 0; }

  Collective call_;
  std::vector<Ref<Storage>> memory_;  // held until the call has ended
  ProcessGroup& group_;
  std::mutex waiting_;  // held by the thread that finishes a message
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::exception_ptr error_;
  std::vector<std::function<void()>> callbacks_;
  uint64_t flight_ = 0;   // of the flight recorder, 0 where there is none
  uint64_t message_ = 0;  // the engine's number, for sends and receives
  int source_ = -1;
  std::shared_ptr<QueuedCalls> queued_;  // of an engine of a device
};

// Owned by shared pointers; works keep it alive through the binding.
class ProcessGroup {
 public:
  ProcessGroup(std::unique_ptr<Engine> engine, const EngineOptions& options);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;

  Engine& engine() { return *engine_; }
  const EngineOptions& options() const { return options_; }
  uint64_t sequence();  // of the last collective

  // Starts the thread that shows the others that this process lives.
  void start();
  // Runs a collective on memory that it reads or writes: here and now, or, if `async`, in the
  // thread of the group. The order of calls is kept.
  std::shared_ptr<Work> run(Collective call, std::vector<Ref<Storage>> memory, bool async);
  std::shared_ptr<Work> message(Collective call, Ref<Storage> memory, bool async);
  // Until end_together() calls of this thread on a device are kept, and then given to it as one.
  void begin_together();
  std::shared_ptr<Work> end_together(bool async);
  void forget_together();
  void abort(const std::string& reason);
  // Takes no part any more. Collectives that were begun are ended before, or fail unless `drain`.
  void leave(const std::string& error, bool drain);

 private:
  friend class Work;
  void serve();
  void run_here(Collective& call, uint64_t flight);
  std::shared_ptr<Work> queue(Collective call, std::vector<Ref<Storage>> memory, bool async);
  std::shared_ptr<Work> give(QueueRequest request);
  void check_usable() const;

  const EngineOptions options_;
  const std::unique_ptr<Engine> engine_;
  const uint32_t generation_;  // of fork: the threads are not in a child
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Work>> queue_;
  std::vector<std::shared_ptr<Work>> messages_;  // kept until they are done
  bool busy_ = false;                            // some thread runs a collective
  bool stopping_ = false, left_ = false;
  uint64_t sequence_ = 0;
  int queued_ = 0;                            // requests that a device has not ended
  std::map<int32_t, QueueRequest> together_;  // by thread
  std::thread thread_;
};

}  // namespace facula::distributed
