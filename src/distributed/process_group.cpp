#include "distributed/process_group.h"

#include <unistd.h>

#include <algorithm>

#include "core/fork.h"
#include "core/interrupts.h"
#include "distributed/call_text.h"

namespace facula::distributed {

// --- Work

void Work::run() noexcept {
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
    if (done_ || !is_message()) return done_;
  }
  try {
    return group_.engine().test(message_);
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

void Work::wait(std::chrono::milliseconds timeout) {
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

void ProcessGroup::run_here(Collective& call) {
  const auto done = [this] {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    if (!queue_.empty() || left_) changed_.notify_all();
  };
  try {
    engine_->run(call);
  } catch (...) {
    done();
    throw;
  }
  done();
}

std::shared_ptr<Work> ProcessGroup::run(Collective call, std::vector<Ref<Storage>> memory,
                                        bool async) {
  std::unique_lock lock(mutex_);
  check_usable();
  call.record.sequence = ++sequence_;
  call.record.started_ms = clock_ms();
  call.record.thread = gettid();
  call.record.async = async;
  if (!async && queue_.empty() && !busy_) {
    busy_ = true;
    lock.unlock();
    run_here(call);
    return nullptr;
  }
  auto work = std::make_shared<Work>(*this, std::move(call), std::move(memory));
  queue_.push_back(work);
  lock.unlock();
  changed_.notify_all();
  if (async) return work;
  work->wait({});
  return nullptr;
}

std::shared_ptr<Work> ProcessGroup::message(CallRecord record, void* data, Ref<Storage> memory,
                                            bool async) {
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
  Collective call;
  call.record = record;
  auto work = std::make_shared<Work>(*this, std::move(call), std::vector{std::move(memory)});
  work->message_ = record.call == Call::Send ? engine_->begin_send(record, data)
                                             : engine_->begin_receive(record, data);
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
    changed_.wait(lock, [this] { return !busy_ && queue_.empty(); });
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
