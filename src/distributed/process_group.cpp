#include "distributed/process_group.h"

#include <unistd.h>

#include <algorithm>

#include "core/fork.h"
#include "core/interrupts.h"
#include "distributed/call_text.h"
#include "distributed/flight_recorder.h"

namespace facula::distributed {

// --- Work

void Work::run() noexcept {
  if (FlightRecorder* r = FlightRecorder::get(); r && flight_) r->start(flight_);
  try {
    group_.engine().run(call_);
    end(nullptr);
  } catch (...) {
    end(std::current_exception());
  }
}

void Work::end(std::exception_ptr error) noexcept {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    error_ = std::move(error);
    callbacks.swap(callbacks_);
  }
  if (FlightRecorder* r = FlightRecorder::get(); r && flight_) r->end(flight_, error_ != nullptr);
  ended_.notify_all();
  for (const auto& f : callbacks) f();
}

void Work::then(std::function<void()> f) {
  {
    const std::lock_guard lock(mutex_);
    if (!done_) return callbacks_.push_back(std::move(f));
  }
  f();
}

bool Work::is_completed() {
  {
    const std::lock_guard lock(mutex_);
    if (done_ || (!is_message() && !queued_)) return done_;
  }
  try {
    return queued_ ? queued_->is_done() : group_.engine().test(message_);
  } catch (...) {
    end(std::current_exception());
    return true;
  }
}

std::exception_ptr Work::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Work::finish_message() {
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;
  }
  try {
    source_ = group_.engine().finish(message_);
    end(nullptr);
  } catch (...) {
    end(std::current_exception());
  }
}

void Work::wait_for_message(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!is_completed()) {
    poll_interrupts();
    if (std::chrono::steady_clock::now() > end)
      throw DistributedError(concat("wait(): ", text_of(call_.record), " has not ended within ",
                                    timeout.count(), " ms\n", group_.engine().table()));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// Has the current stream wait; true if the host need not.
bool Work::wait_for_stream(std::chrono::milliseconds timeout) {
  queued_->hold_current_stream();
  const auto& settings = group_.options().settings;
  return timeout.count() == 0 && call_.record.call != Call::Barrier &&
         !settings.contains("blocking_wait");
}

void Work::wait(std::chrono::milliseconds timeout) {
  if (queued_) {
    if (wait_for_stream(timeout)) return;
    wait_for_message(timeout.count() > 0 ? timeout : group_.options().timeout);
    if (const std::exception_ptr failed = error()) std::rethrow_exception(failed);
    return;
  }
  if (is_message()) {
    if (timeout.count() > 0) wait_for_message(timeout);
    const std::lock_guard lock(waiting_);
    finish_message();
  }
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!done_) {
    ended_.wait_for(lock, std::chrono::milliseconds(50));
    if (done_) break;
    lock.unlock();
    poll_interrupts();
    lock.lock();
    if (timeout.count() > 0 && std::chrono::steady_clock::now() - begin > timeout)
      throw DistributedError(concat("wait(): ", text_of(call_.record), " has not ended within ",
                                    timeout.count(), " ms\n", group_.engine().table()));
  }
  if (error_) std::rethrow_exception(error_);
}

// --- ProcessGroup

ProcessGroup::ProcessGroup(std::unique_ptr<Engine> engine, const EngineOptions& options)
    : options_(options), engine_(std::move(engine)), generation_(fork_generation()) {}

ProcessGroup::~ProcessGroup() {
  if (generation_ != fork_generation()) {
    // A forked child has the object and not the thread: neither joining it nor detaching it works.
    if (thread_.joinable()) new std::thread(std::move(thread_));
    return;
  }
  leave("", false);
}

void ProcessGroup::start() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
}

void ProcessGroup::serve() {
  constexpr auto between_beats = std::chrono::milliseconds(200);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (queue_.empty() || busy_) {
      changed_.wait_for(lock, between_beats);
      engine_->beat();
      continue;
    }
    std::shared_ptr<Work> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    work->run();
    work.reset();  // may free tensors, and so run Python
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

uint64_t ProcessGroup::sequence() {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

void ProcessGroup::check_usable() const {
  check(generation_ == fork_generation(), "group '", options_.group,
        "': expected a call in the process that made the group; got one in a forked child");
  check(!left_, "group '", options_.group,
        "': expected a group in use; got one that was destroyed");
}

void ProcessGroup::run_here(Collective& call, uint64_t flight) {
  FlightRecorder* recorder = FlightRecorder::get();
  if (recorder) recorder->start(flight);
  const auto done = [&](bool failed) {
    if (recorder) recorder->end(flight, failed);
    const std::lock_guard lock(mutex_);
    busy_ = false;
    if (!queue_.empty() || left_) changed_.notify_all();
  };
  try {
    engine_->run(call);
  } catch (...) {
    done(true);
    throw;
  }
  done(false);
}

std::shared_ptr<Work> ProcessGroup::run(Collective call, std::vector<Ref<Storage>> memory,
                                        bool async) {
  std::unique_lock lock(mutex_);
  check_usable();
  call.record.sequence = ++sequence_;
  call.record.started_ms = clock_ms();
  call.record.thread = gettid();
  call.record.async = async;
  if (engine_->is_of_device()) {
    lock.unlock();
    return queue(std::move(call), std::move(memory), async);
  }
  FlightRecorder* recorder = FlightRecorder::get();
  const uint64_t flight = recorder ? recorder->schedule(call.record, options_) : 0;
  if (!async && queue_.empty() && !busy_) {
    busy_ = true;
    lock.unlock();
    run_here(call, flight);
    return nullptr;
  }
  auto work = std::make_shared<Work>(*this, std::move(call), std::move(memory));
  work->flight_ = flight;
  queue_.push_back(work);
  lock.unlock();
  changed_.notify_all();
  if (async) return work;
  work->wait({});
  return nullptr;
}

std::shared_ptr<Work> ProcessGroup::queue(Collective call, std::vector<Ref<Storage>> memory,
                                          bool async) {
  QueueRequest request;
  {
    const std::lock_guard lock(mutex_);
    const auto together = together_.find(call.record.thread);
    if (together != together_.end()) {
      together->second.calls.push_back(std::move(call));
      for (Ref<Storage>& storage : memory) together->second.memory.push_back(std::move(storage));
      return nullptr;
    }
  }
  request.calls.push_back(std::move(call));
  request.memory = std::move(memory);
  request.own_stream = async;
  const bool barrier = request.calls[0].record.call == Call::Barrier;
  std::shared_ptr<Work> work = give(std::move(request));
  if (async) return work;
  if (barrier || options_.settings.contains("blocking_wait")) work->wait({});
  return nullptr;
}

std::shared_ptr<Work> ProcessGroup::give(QueueRequest request) {
  FlightRecorder* recorder = FlightRecorder::get();
  std::vector<uint64_t> flights;
  for (const Collective& call : request.calls) {
    if (recorder == nullptr) break;
    flights.push_back(recorder->schedule(call.record, options_));
    recorder->start(flights.back());
  }
  auto work = std::make_shared<Work>(*this, request.calls[0], std::vector<Ref<Storage>>{});
  const auto ended = [this, work, recorder, flights](std::exception_ptr error) {
    for (const uint64_t flight : flights) recorder->end(flight, error != nullptr);
    work->end(std::move(error));
    const std::lock_guard lock(mutex_);
    --queued_;
    changed_.notify_all();
  };
  request.ended = ended;
  {
    const std::lock_guard lock(mutex_);
    ++queued_;
  }
  try {
    work->queued_ = engine_->queue(std::move(request));
  } catch (...) {
    ended(std::current_exception());
    throw;
  }
  return work;
}

void ProcessGroup::begin_together() {
  const std::lock_guard lock(mutex_);
  check_usable();
  check(engine_->is_of_device(), "group '", options_.group,
        "': expected an engine of a device for calls that are given to it as one");
  check(together_.try_emplace(gettid()).second, "group '", options_.group,
        "': expected no scope of coalesced calls within another");
}

std::shared_ptr<Work> ProcessGroup::end_together(bool async) {
  QueueRequest request;
  {
    const std::lock_guard lock(mutex_);
    auto kept = together_.extract(gettid());
    check(!kept.empty(), "group '", options_.group, "': expected a scope of coalesced calls");
    if (kept.mapped().calls.empty()) return nullptr;
    check_usable();
    request = std::move(kept.mapped());
  }
  const Device device = request.calls[0].device;
  for (const Collective& call : request.calls)
    check(call.device == device, "group '", options_.group,
          "': expected coalesced calls on one device; got ", str(device), " and ",
          str(call.device));
  request.own_stream = async;
  std::shared_ptr<Work> work = give(std::move(request));
  return async ? work : nullptr;
}

void ProcessGroup::forget_together() {
  const std::lock_guard lock(mutex_);
  together_.erase(gettid());
}

std::shared_ptr<Work> ProcessGroup::message(Collective call, Ref<Storage> memory, bool async) {
  CallRecord& record = call.record;
  {
    const std::lock_guard lock(mutex_);
    check_usable();
    std::erase_if(messages_, [](const auto& w) {
      if (!w->is_completed()) return false;
      w->finish_message();
      return true;
    });
  }
  record.started_ms = clock_ms();
  record.thread = gettid();
  if (engine_->is_of_device()) return queue(std::move(call), {std::move(memory)}, async);
  auto work = std::make_shared<Work>(*this, call, std::vector{std::move(memory)});
  FlightRecorder* recorder = FlightRecorder::get();
  if (recorder) {
    work->flight_ = recorder->schedule(record, options_);
    recorder->start(work->flight_);
  }
  try {
    work->message_ = record.call == Call::Send ? engine_->begin_send(record, call.inputs[0])
                                               : engine_->begin_receive(record, call.outputs[0]);
  } catch (...) {
    if (recorder) recorder->end(work->flight_, true);
    throw;
  }
  if (!async) {
    work->wait({});
    return work;
  }
  engine_->pursue();
  const std::lock_guard lock(mutex_);
  messages_.push_back(work);
  return work;
}

void ProcessGroup::abort(const std::string& reason) { engine_->abort(reason); }

void ProcessGroup::leave(const std::string& error, bool drain) {
  std::deque<std::shared_ptr<Work>> dropped;
  {
    std::unique_lock lock(mutex_);
    if (left_) return;
    left_ = true;
    if (!drain) dropped.swap(queue_);
    if (busy_ && !drain) engine_->abort(concat("rank ", options_.rank, " ended"));
    changed_.wait(lock, [&] { return !busy_ && queue_.empty() && (!drain || queued_ == 0); });
    stopping_ = true;
  }
  changed_.notify_all();
  for (const auto& work : dropped)
    work->end(std::make_exception_ptr(DistributedError(
        concat("group '", options_.group, "': destroyed before ", text_of(work->record())))));
  if (thread_.joinable()) thread_.join();
  engine_->leave(error);
  messages_.clear();
}

}  // namespace facula::distributed
