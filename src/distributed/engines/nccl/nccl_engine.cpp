// The engine over NCCL, for tensors of accelerators: calls are given to streams, and the host goes
// on. NCCL itself knows neither who is lost nor what the others call, so that each group has an
// engine of the host beside it (local or Gloo). Over it a thread of each rank meets those of the
// others several times a second: the ranks tell each other what they wait for, and who is lost is
// named by that engine. What is found ends the communicator, so that no stream waits for ever.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "core/fork.h"
#include "core/interrupts.h"
#include "core/late_error.h"
#include "core/stream.h"
#include "distributed/call_text.h"
#include "distributed/engine_plugin.h"
#include "distributed/engines/nccl/nccl_calls.h"
#include "distributed/engines/nccl/nccl_library.h"
#include "distributed/engines/nccl/rank_status.h"

namespace facula::distributed {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds between_looks{10};  // at the device, while it has calls
constexpr int64_t between_meetings_ms = 100;
constexpr int64_t circle_ms = 1500;         // for which nothing moves in a circle
constexpr int64_t lost_patience_ms = 300;   // that calls have to end after a rank was lost
constexpr int64_t left_patience_ms = 5000;  // or has left after its part of them
constexpr milliseconds naming_time{1000};   // for news of the rank that a failure of NCCL is due to

// A failure that the group does not survive.
struct GroupFailure {
  std::string text;
};

// The settings of a communicator, by PyTorch's names.
constexpr std::pair<const char*, int NcclConfig::*> config_fields[] = {
    {"blocking", &NcclConfig::blocking},
    {"cga_cluster_size", &NcclConfig::cga_cluster_size},
    {"min_ctas", &NcclConfig::min_ctas},
    {"max_ctas", &NcclConfig::max_ctas},
    {"split_share", &NcclConfig::split_share},
    {"traffic_class", &NcclConfig::traffic_class},
    {"collnet_enable", &NcclConfig::collnet_enable},
    {"cta_policy", &NcclConfig::cta_policy},
    {"nvls_ctas", &NcclConfig::nvls_ctas},
    {"max_p2p_peers", &NcclConfig::max_p2p_peers},
};

EngineOptions options_of_host(const EngineOptions& options) {
  EngineOptions host = options;
  host.settings.clear();
  host.timeout = std::max(options.timeout, milliseconds(60'000));
  host.lag = std::chrono::hours(1);
  return host;
}

// The host's engine tells of the meeting in which it has found out, and of its own calls: what is
// left is why.
std::string reason_of(const std::string& told) {
  const size_t meeting = told.find(" waited in ");
  const size_t begin = meeting == told.npos ? told.find("': ") : told.find("; ", meeting);
  if (begin == told.npos) return told;
  const std::string why = told.substr(begin + (meeting == told.npos ? 3 : 2));
  return why.substr(0, why.find("\n  rank 0: "));
}

class NcclEngine final : public Engine {
 public:
  explicit NcclEngine(const EngineOptions& options)
      : options_(options),
        nccl_(NcclLibrary::open(setting("library"))),
        host_(new_engine(setting("host"), options_of_host(options))),
        generation_(fork_generation()),
        timeout_ms_(options.timeout.count()),
        statuses_(static_cast<size_t>(options.size)) {}

  ~NcclEngine() override {
    if (generation_ == fork_generation()) {
      leave("");
      return;
    }
    // A forked child has neither the threads nor the device, nor may it free what is the device's.
    if (watcher_.joinable()) new std::thread(std::move(watcher_));
    new std::deque(std::move(pending_));
    new std::shared_ptr(std::move(last_));
    static_cast<void>(host_.release());
  }

  const char* name() const override { return "nccl"; }
  bool is_of_device() const override { return true; }

  // NCCL's name of the communicator, which rank 0 makes, and the address of the host's engine.
  std::string address() override {
    NcclId id{};
    const NcclResult made = options_.rank == 0 ? nccl_.get_unique_id(&id) : NcclResult::Success;
    check(made == NcclResult::Success,
          "init_process_group(): expected a name of NCCL's for group '", options_.group, "'; got ",
          nccl_.text_of(made, nullptr));
    return std::string(id.bytes, sizeof id.bytes) + host_->address();
  }

  bool connect(const std::vector<std::string>& addresses) override {
    check_value(addresses.size() == statuses_.size(), "connect(): expected ", options_.size,
                " addresses; got ", addresses.size());
    std::vector<std::string> of_host;
    for (const std::string& address : addresses) {
      check_value(address.size() >= sizeof id_.bytes, "connect(): expected addresses over NCCL");
      of_host.push_back(address.substr(sizeof id_.bytes));
    }
    std::memcpy(id_.bytes, addresses[0].data(), sizeof id_.bytes);
    if (!host_->connect(of_host)) return false;
    watching_ = true;
    watcher_ = std::thread([this] { watch(); });
    const std::string device = setting("device");
    if (!device.empty()) enter({}, [&] { open(with_index(parse_device(device))); });
    return true;
  }

  std::shared_ptr<QueuedCalls> queue(QueueRequest request) override {
    for (const Collective& call : request.calls) check_call(nccl_, call);
    auto made = std::make_shared<Request>(*this, std::move(request));
    enter(made->calls(), [&] { give(made); });
    return made;
  }

  void run(Collective& call) override { refuse(call.record); }
  uint64_t begin_send(const CallRecord& record, const void*) override { return refuse(record); }
  uint64_t begin_receive(const CallRecord& record, void*) override { return refuse(record); }
  int finish(uint64_t) override { return -1; }
  bool test(uint64_t) override { return true; }

  void abort(const std::string& reason) override { break_group(reason); }
  void set_timeout(milliseconds timeout) override { timeout_ms_ = timeout.count(); }
  void beat() override { host_->beat(); }

  std::string table() override {
    const std::lock_guard lock(mutex_);
    return table_of(statuses_);
  }

  void leave(const std::string& error) override {
    {
      std::unique_lock lock(mutex_);
      if (left_) return;
      left_ = stopping_ = true;
      changed_.notify_all();
      // It may be meeting the other ranks, which come soon unless they are lost.
      if (!changed_.wait_for(lock, milliseconds(1000), [this] { return !watching_; })) {
        lock.unlock();
        host_->abort(concat("rank ", options_.rank, " ended"));
      }
    }
    if (watcher_.joinable()) watcher_.join();
    host_->leave(error);
    end_communicator(error.empty() && !broken_ && pending_.empty());
    fail_pending(concat("group '", options_.group, "': destroyed"));
  }

 private:
  // Calls that are on a stream.
  class Request final : public QueuedCalls {
   public:
    Request(NcclEngine& engine, QueueRequest request)
        : engine_(engine), request_(std::move(request)) {}

    bool is_done() override {
      if (state_ == State::Done) return true;
      check_alive();
      return event.is_done();
    }
    void hold_current_stream() override {
      if (state_ != State::Done) check_alive();
      event.wait(current_stream(device()));
    }
    void end(std::exception_ptr error) {
      state_ = error ? State::Failed : State::Done;
      request_.memory.clear();
      request_.ended(error);
      request_.ended = nullptr;
    }
    const std::vector<Collective>& calls() const { return request_.calls; }
    Device device() const { return request_.calls[0].device; }
    bool has_own_stream() const { return request_.own_stream; }

    DeviceEvent event;
    int64_t given_ms = 0;

   private:
    enum class State : uint8_t { Given, Done, Failed };
    void check_alive() const {
      if (state_ == State::Failed || engine_.broken_) engine_.raise();
    }

    NcclEngine& engine_;
    QueueRequest request_;
    std::atomic<State> state_{State::Given};
  };

  std::string setting(const char* name) const {
    const auto it = options_.settings.find(name);
    return it == options_.settings.end() ? std::string() : it->second;
  }

  uint64_t refuse(const CallRecord& record) const {
    throw Error(ErrorKind::Runtime, name_of(record.call),
                "(): expected a tensor on an accelerator, over NCCL; got one on the CPU");
  }

  // --- failures

  // Under the mutex.
  CallRecord waiting() const {
    return pending_.empty() ? entering_ : pending_.front()->calls()[0].record;
  }

  // What the host's engine has found out, as an error of the call that waits. Under the mutex.
  std::string lost_text() const {
    std::string text = concat("group '", options_.group, "': ");
    if (const CallRecord call = waiting(); call.call != Call::None)
      text += concat("rank ", options_.rank, " waited in ", text_of(call), "; ");
    return concat(text, lost_, "\nwhen all last met:\n", table_of(statuses_));
  }

  [[noreturn]] void raise() {
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      text = error_.empty() ? lost_text() : error_;
    }
    if (is_open_) forget_late_error(device_);
    throw DistributedError(text);
  }

  // Throws for a result that is a failure: of the group unless NCCL has refused the call as such.
  void check_result(NcclResult result, const char* what) {
    if (result == NcclResult::Success || result == NcclResult::InProgress) return;
    const std::string text = concat(what, ": ", nccl_.text_of(result, comm_));
    const bool refused =
        result == NcclResult::InvalidArgument || result == NcclResult::InvalidUsage;
    if (refused && is_open_)
      throw Error(ErrorKind::Runtime, "group '", options_.group, "': ", text);
    throw GroupFailure{text};
  }

  // Ends the communicator and all its calls, here and at the other ranks.
  void break_group(const std::string& reason, bool tell = true) {
    take_done();
    const std::string text = tell ? concat("group '", options_.group, "': ", reason) : reason;
    {
      const std::lock_guard lock(mutex_);
      if (broken_) return;
      error_ = text;
      if (!pending_.empty()) note_late_error(device_, text);
      broken_ = true;
    }
    if (tell) host_->abort(reason);
    end_communicator(false);
    fail_pending(text);
  }

  void fail_pending(const std::string& text) {
    std::deque<std::shared_ptr<Request>> failed;
    {
      const std::lock_guard lock(mutex_);
      failed.swap(pending_);
      if (error_.empty() && !failed.empty()) error_ = text;
    }
    for (const auto& request : failed)
      request->end(std::make_exception_ptr(DistributedError(text)));
  }

  // NCCL has failed: which rank that is due to the host's engine knows, soon.
  void break_group_by(const GroupFailure& failure, bool is_watcher = false) {
    const auto end = std::chrono::steady_clock::now() + naming_time;
    std::unique_lock lock(mutex_);
    const auto is_over = [&] {
      return !lost_.empty() || stopping_ || broken_ || std::chrono::steady_clock::now() >= end;
    };
    while (!is_over()) {
      if (is_watcher) {
        lock.unlock();
        meet();
        lock.lock();
      }
      changed_.wait_for(lock, milliseconds(50), is_over);
    }
    const std::string lost = lost_.empty() ? "" : lost_text();
    lock.unlock();
    if (lost.empty()) return break_group(failure.text);
    break_group(concat(lost, "\n", failure.text), false);
  }

  // --- calls

  // Runs f() with the communicator for itself. `calls` are what it is about to give.
  template <class F>
  void enter(const std::vector<Collective>& calls, F&& f) {
    try {
      std::unique_lock lock(nccl_mutex_, std::defer_lock);
      while (!lock.try_lock_for(milliseconds(20))) {
        poll_interrupts();
        check_usable();
      }
      check_usable();
      note_given(calls);
      f();
      note_entered();
    } catch (const GroupFailure& failure) {
      note_entered();
      break_group_by(failure);
      raise();
    } catch (...) {
      note_entered();
      throw;
    }
  }

  void check_usable() {
    bool lost;
    {
      const std::lock_guard lock(mutex_);
      check(!left_, "group '", options_.group,
            "': expected a group in use; got one that was destroyed");
      lost = !lost_.empty();
    }
    if (broken_ || lost) raise();
  }

  void note_given(const std::vector<Collective>& calls) {
    const std::lock_guard lock(mutex_);
    if (calls.empty()) return;
    ++status_.given;
    entering_ = calls[0].record;
    for (const Collective& call : calls)
      if (call.record.sequence > 0)
        status_.last[call.record.sequence % RankStatus::most] = call.record;
  }
  void note_entered() {
    const std::lock_guard lock(mutex_);
    entering_ = {};
  }

  void give(const std::shared_ptr<Request>& request) {
    const Device device = request->device();
    const DeviceGuard guard(device);
    open(device);
    const Stream current = current_stream(device);
    const Stream stream = request->has_own_stream() ? stream_ : current;
    stream_waits(stream, current);
    // Calls of one communicator go in one order, whatever streams they are on.
    if (last_) last_->event.wait(stream);
    launch(request->calls(), stream_handle(stream));
    request->event.record(stream);
    request->given_ms = clock_ms();
    last_ = request;
    const std::lock_guard lock(mutex_);
    if (broken_) throw GroupFailure{};
    pending_.push_back(request);
    changed_.notify_all();
  }

  void launch(const std::vector<Collective>& calls, void* stream) {
    NcclLauncher launcher(nccl_, comm_, options_.rank, stream);
    for (const Collective& call : calls) launcher.prepare(call);
    check_result(launcher.result(), "ncclRedOpCreatePreMulSum");
    check_result(nccl_.group_start(), "ncclGroupStart");
    for (const Collective& call : calls)
      if (launcher.result() == NcclResult::Success) launcher.give(call);
    const NcclResult end = nccl_.group_end();
    check_result(launcher.result(), name_of(calls[0].record.call));
    check_result(end, name_of(calls[0].record.call));
    settle(name_of(calls[0].record.call));
  }

  // Waits until NCCL has taken what was given, or has made the communicator.
  void settle(const char* what) {
    const int64_t end = clock_ms() + timeout_ms_;
    for (int looks = 0;; ++looks) {
      NcclResult state = NcclResult::Success;
      const NcclResult asked = nccl_.comm_async_error(comm_, &state);
      check_result(asked, what);
      check_result(state, what);
      if (state == NcclResult::Success) return;
      if (broken_) throw GroupFailure{};
      bool lost;
      {
        const std::lock_guard lock(mutex_);
        lost = !lost_.empty();
      }
      if (lost) throw GroupFailure{concat("in ", what)};
      if (clock_ms() > end)
        throw GroupFailure{concat("rank ", options_.rank, " waited ", timeout_ms_.load(),
                                  " ms for the other ranks in ", what, "\n", table())};
      poll_interrupts();
      // Mostly NCCL has taken the calls after some microseconds.
      if (looks < 200)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(std::min(looks, 1000)));
    }
  }

  // Makes the communicator on the device of the first call.
  void open(Device device) {
    if (is_open_) {
      check(device == device_, "group '", options_.group, "': expected a tensor on ", str(device_),
            ", where its communicator is; got one on ", str(device));
      return;
    }
    const DeviceGuard guard(device);
    const Stream stream = new_stream(device, setting("high_priority").empty() ? 0 : -1);
    NcclConfig config;
    config.version = static_cast<unsigned>(nccl_.version);
    config.blocking = 0;
    for (const auto& [name, field] : config_fields)
      if (const std::string text = setting(name); !text.empty()) config.*field = std::stoi(text);
    const std::string network = setting("net_name"), title = setting("comm_name");
    if (!network.empty()) config.net_name = network.c_str();
    if (!title.empty()) config.comm_name = title.c_str();
    device_ = device;
    stream_ = stream;
    const NcclResult begun = nccl_.comm_init(&comm_, options_.size, id_, options_.rank, &config);
    check_result(begun, "ncclCommInitRankConfig");
    settle("ncclCommInitRankConfig");
    is_open_ = true;
  }

  void end_communicator(bool gently) {
    std::unique_lock lock(nccl_mutex_, std::defer_lock);
    // A call that NCCL does not return from is ended by what follows.
    static_cast<void>(lock.try_lock_for(milliseconds(2000)));
    NcclComm* comm = std::exchange(comm_, nullptr);
    if (comm == nullptr) return;
    const DeviceGuard guard(device_);
    if (gently && finalize(comm))
      nccl_.comm_destroy(comm);
    else
      nccl_.comm_abort(comm);
  }

  bool finalize(NcclComm* comm) {
    NcclResult state = nccl_.comm_finalize(comm);
    const int64_t end = clock_ms() + 2000;
    while (state == NcclResult::InProgress && clock_ms() < end) {
      std::this_thread::sleep_for(milliseconds(1));
      if (nccl_.comm_async_error(comm, &state) != NcclResult::Success) return false;
    }
    return state == NcclResult::Success;
  }

  // --- the thread that looks after calls

  void watch() {
    int64_t met_ms = 0;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        const milliseconds pause = pending_.empty() ? milliseconds(50) : between_looks;
        changed_.wait_for(lock, pause, [this] { return stopping_; });
        if (stopping_) break;
      }
      if (broken_) continue;
      try {
        if (clock_ms() - met_ms >= between_meetings_ms) {
          meet();
          met_ms = clock_ms();
        }
        look_at_device();
      } catch (const GroupFailure& failure) {
        break_group_by(failure, true);
      } catch (const std::exception& e) {
        break_group(e.what());
      }
    }
    if (!broken_) meet(true);
    const std::lock_guard lock(mutex_);
    watching_ = false;
    changed_.notify_all();
  }

  // Tells the other ranks what this one waits for, and hears the same of them.
  void meet(bool last = false) {
    {
      const std::lock_guard lock(mutex_);
      if (!lost_.empty()) return;
    }
    RankStatus mine = status();
    mine.leaves = last;
    std::vector<RankStatus> all(statuses_.size());
    Collective meeting;
    meeting.record.call = Call::AllGather;
    meeting.record.dtype = DType::UInt8;
    meeting.record.count = sizeof mine;
    meeting.record.sequence = ++meetings_;
    meeting.record.started_ms = clock_ms();
    meeting.record.thread = gettid();
    meeting.inputs = {&mine};
    for (RankStatus& s : all) meeting.outputs.push_back(&s);
    try {
      host_->run(meeting);
    } catch (const DistributedError& e) {
      const std::lock_guard lock(mutex_);
      lost_ = reason_of(e.what());
      lost_ms_ = clock_ms();
      changed_.notify_all();
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      statuses_ = all;
    }
    if (last) return;
    const std::string wrong = difference(all, options_.group);
    if (!wrong.empty()) return break_group(wrong, false);
    look_for_circle(all);
  }

  RankStatus status() {
    const std::lock_guard lock(mutex_);
    RankStatus s = status_;
    s.waiting = waiting();
    if (pending_.empty()) return s;
    s.together = static_cast<int32_t>(pending_.front()->calls().size());
    return s;
  }

  void look_for_circle(const std::vector<RankStatus>& all) {
    const int other = opposite(all, options_.rank);
    const auto moved = [&](int r) {
      const RankStatus& s = all[static_cast<size_t>(r)];
      return s.given + s.done;
    };
    const uint64_t stamp =
        other < 0 ? 0 : (moved(options_.rank) << 32 ^ moved(other) << 8 ^ uint64_t(other)) + 1;
    if (stamp != circle_) circle_since_ms_ = clock_ms();
    circle_ = stamp;
    if (stamp != 0 && clock_ms() - circle_since_ms_ >= circle_ms)
      break_group(concat("ranks wait for each other:\n", table_of(all)));
  }

  void look_at_device() {
    take_done();
    check_async_error();
    std::unique_lock lock(mutex_);
    const bool waits = !pending_.empty() || entering_.call != Call::None;
    if (!waits) return;
    const std::string lost = lost_.empty() ? "" : lost_text();
    const bool patient = clock_ms() - lost_ms_ < patience();
    const bool late = !pending_.empty() && clock_ms() - pending_.front()->given_ms > timeout_ms_;
    const std::string call = late ? text_of(pending_.front()->calls()[0].record) : "";
    lock.unlock();
    if (!lost.empty() && !patient) return break_group(lost, false);
    if (late)
      break_group(concat("rank ", options_.rank, " waited ", timeout_ms_.load(), " ms for ", call,
                         "\n", table()));
  }

  // A rank that has left may have done its part of a call, which then ends when this device comes
  // to it.
  int64_t patience() const {
    const CallRecord call = waiting();
    bool left = false;
    for (const RankStatus& s : statuses_) {
      if (!s.leaves) continue;
      left = true;
      if (call.sequence > s.last_number()) return lost_patience_ms;
    }
    return left ? left_patience_ms : lost_patience_ms;
  }

  void check_async_error() {
    const std::unique_lock lock(nccl_mutex_, std::try_to_lock);
    if (!lock || comm_ == nullptr || !is_open_) return;
    NcclResult state = NcclResult::Success;
    nccl_.comm_async_error(comm_, &state);
    if (state != NcclResult::Success && state != NcclResult::InProgress)
      throw GroupFailure{concat("NCCL: ", nccl_.text_of(state, comm_))};
  }

  // Ends the requests that the device is through with, in their order.
  void take_done() {
    while (true) {
      std::shared_ptr<Request> first;
      {
        const std::lock_guard lock(mutex_);
        if (pending_.empty() || broken_) return;
        first = pending_.front();
      }
      if (!first->event.is_done()) return;
      {
        const std::lock_guard lock(mutex_);
        if (pending_.empty() || pending_.front() != first) continue;
        pending_.pop_front();
        ++status_.done;
      }
      first->end(nullptr);
    }
  }

  const EngineOptions options_;
  const NcclLibrary& nccl_;
  std::unique_ptr<Engine> host_;
  const uint32_t generation_;  // of fork
  std::atomic<int64_t> timeout_ms_;
  NcclId id_{};

  std::timed_mutex nccl_mutex_;  // held by whoever calls NCCL for the communicator
  NcclComm* comm_ = nullptr;
  Device device_;
  Stream stream_;                  // of calls that are not waited for
  std::shared_ptr<Request> last_;  // that was given
  std::atomic<bool> is_open_{false};

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Request>> pending_;
  RankStatus status_;    // of this rank, without what it waits for
  CallRecord entering_;  // the call that is being given
  std::vector<RankStatus> statuses_;
  std::string error_, lost_;  // what has broken the group, and the host's engine
  int64_t lost_ms_ = 0;
  std::atomic<bool> broken_{false};
  bool left_ = false, stopping_ = false, watching_ = false;

  // Of the watcher alone.
  uint64_t meetings_ = 0, circle_ = 0;
  int64_t circle_since_ms_ = 0;
  std::thread watcher_;
};

}  // namespace
}  // namespace facula::distributed

extern "C" __attribute__((visibility("default"))) facula::distributed::Engine* facula_new_engine(
    const facula::distributed::EngineOptions& options) {
  return new facula::distributed::NcclEngine(options);
}
