// The engine over MPI, for programs that mpirun starts. This file is compiled once for each MPI
// that is installed, as they differ in their headers and binaries: libfacula_engine_openmpi.so and
// libfacula_engine_mpich.so.
//
// No call of MPI waits here: who waits tests, and looks around in between, so that errors, timeouts
// and Ctrl-C end it. A thread tells the other ranks that this one lives, and hears what they tell.
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <thread>

#include "core/interrupts.h"
#include "distributed/call_text.h"
#include "distributed/engines/mpi/mpi_library.h"
#include "distributed/exchange.h"
#include "distributed/peer_table.h"
#include "distributed/waits.h"

namespace facula::distributed {
namespace {

constexpr int packet_tag = 1, data_tag = 2, news_tag = 3, arrival_tag = 4;
// What MPI sends between processes of one machine without asking first is 4 KB or less.
constexpr size_t packet_data = 1792;
constexpr auto between_looks = std::chrono::milliseconds(20);

// Waits ever longer between tests: not at all for some microseconds, in which most answers come,
// then only for other threads, as ranks may share processors.
class Backoff {
 public:
  void pause() {
    if (++tests_ <= 30) return;
    if (tests_ <= 200) {
      sched_yield();
      return;
    }
    std::this_thread::sleep_for(sleep_);
    sleep_ = std::min(sleep_ * 3 / 2, std::chrono::microseconds(1000));
  }

 private:
  int tests_ = 0;
  std::chrono::microseconds sleep_{20};
};

// News with the group that they are of: MPI gives numbers of ended groups to new ones, and late
// news of an old group must not be taken for those of a new one.
struct GroupNews {
  uint64_t group = 0;
  NewsMessage news;
};

// By which members of a group find out that all have come, and agree on its number.
struct Arrival {
  uint64_t count = 0;  // of groups that this rank has made
  char name[248] = {};
};

struct MessageHeader {
  CallRecord record;
  uint64_t number = 0;  // of the message among those of its sender
  std::byte data[packet_data] = {};
};

struct Talk {
  Transfer told;
  GroupNews telling;
  std::deque<NewsMessage> to_tell;
  Deadline next_beat{};
  bool ends = false;  // the other has told that it leaves, fails, or has heard of an error
};

class MpiEngine final : public Engine, private Exchanger {
 public:
  explicit MpiEngine(const EngineOptions& options)
      : options_(options),
        library_(MpiLibrary::get()),
        peers_(options, [this](const NewsMessage& news) { tell_all(news); }),
        talks_(ranks()) {}
  ~MpiEngine() override { close(std::chrono::milliseconds(300)); }

  const char* name() const override { return "mpi"; }
  // The rank of this process in MPI's world.
  std::string address() override { return std::to_string(library_.rank()); }

  bool connect(const std::vector<std::string>& addresses) override {
    check_value(addresses.size() == ranks(), "connect(): expected ", options_.size,
                " addresses; got ", addresses.size());
    for (const std::string& text : addresses) {
      world_ranks_.push_back(std::atoi(text.c_str()));
      check_value(world_ranks_.back() >= 0 && world_ranks_.back() < library_.size(),
                  "connect(): expected ranks of MPI below ", library_.size(), "; got ", text);
    }
    meet_members();
    make_communicators();
    peers_.start_listening();
    talker_ = std::thread([this] { talk(); });
    return true;
  }

  void run(Collective& call) override { run_by_exchange(call, options_, peers_, *this); }

  uint64_t begin_send(const CallRecord& record, const void* data) override {
    auto m = new_message(record);
    m->header.record = record;
    m->header.number = ++sent_;
    m->sends = true;
    peers_.begin_send();
    const size_t bytes = bytes_of(record);
    const bool whole = bytes <= sizeof m->header.data;
    if (whole && bytes > 0) std::memcpy(m->header.data, data, bytes);
    named(record, record.root, [&] {
      m->first.send(&m->header, sizeof m->header, record.root, header_tag(record), messages_comm_);
      if (!whole)
        m->body.send(data, bytes, record.root, body_tag(m->header.number), messages_comm_);
    });
    return keep(std::move(m));
  }

  uint64_t begin_receive(const CallRecord& record, void* data) override {
    auto m = new_message(record);
    m->to = data;
    m->receives = true;
    named(record, record.root, [&] {
      m->first.receive(&m->header, sizeof m->header, record.root, header_tag(record),
                       messages_comm_);
    });
    return keep(std::move(m));
  }

  int finish(uint64_t id) override {
    const std::shared_ptr<Message> m = message(id);
    check(m != nullptr, "wait(): this message has been waited for already");
    peers_.wait_for(m->record);
    struct Ended {
      PeerTable& peers;
      ~Ended() { peers.wait_for({}); }
    } const ended{peers_};
    wait(m->record, m->record.root, [&] { return step(*m); });
    const std::lock_guard lock(mutex_);
    messages_.erase(id);
    return m->source;
  }

  bool test(uint64_t id) override {
    const std::shared_ptr<Message> m = message(id);
    return m == nullptr || step(*m);
  }

  void abort(const std::string& reason) override {
    peers_.put_error(concat("group '", options_.group, "': ", reason));
  }
  void leave(const std::string& error) override {
    if (closed_) return;
    tell_all(peers_.news(error.empty() ? News::Left : News::Failed, error));
    if (!error.empty()) library_.forgo_end();
    // Ends earlier if all others have said that they end, too.
    close(std::chrono::milliseconds(2000));
    // mpirun ends the other ranks as soon as this one has ended: they are to say why first.
    if (!error.empty() && options_.size > 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  void set_timeout(std::chrono::milliseconds timeout) override { peers_.set_timeout(timeout); }
  void beat() override { changed_.notify_all(); }
  std::string table() override { return peers_.table(); }

 private:
  struct Message {
    CallRecord record;
    MessageHeader header;
    void* to = nullptr;
    int source = -1;
    bool sends = false, receives = false, header_done = false;
    std::mutex mutex;  // several threads may ask for one message
    Transfer first, body;
  };

  size_t ranks() const { return static_cast<size_t>(options_.size); }
  static size_t bytes_of(const CallRecord& r) {
    return static_cast<size_t>(r.count) * itemsize(r.dtype);
  }

  // --- the group

  void meet_members() {
    static std::atomic<uint64_t> made{0};
    Arrival mine;
    mine.count = ++made;
    std::strncpy(mine.name, options_.group.c_str(), sizeof mine.name - 1);
    std::vector<Arrival> found(ranks(), mine);
    std::vector<Transfer> receives(ranks()), sends(ranks());
    for (size_t r = 0; r < ranks(); ++r) {
      if (static_cast<int>(r) == options_.rank) continue;
      receives[r].receive(&found[r], sizeof(Arrival), world_ranks_[r], arrival_tag,
                          library_.world());
      sends[r].send(&mine, sizeof mine, world_ranks_[r], arrival_tag, library_.world());
    }
    const Deadline end = deadline_after(options_.timeout.count());
    Backoff backoff;
    const auto have_moved = [](std::vector<Transfer>& all) {
      return std::all_of(all.begin(), all.end(), [](Transfer& t) { return t.test(); });
    };
    while (!have_moved(receives) || !have_moved(sends)) {
      backoff.pause();
      poll_interrupts();
      if (Clock::now() < end) continue;
      std::string missing;
      for (size_t r = 0; r < ranks(); ++r)
        if (!receives[r].test()) missing += concat(missing.empty() ? "" : ", ", r);
      throw DistributedError(concat("init_process_group(): rank ", options_.rank, " of group '",
                                    options_.group, "' waited for all ", options_.size,
                                    " ranks; missing are ", missing));
    }
    for (size_t r = 0; r < ranks(); ++r) {
      if (std::strcmp(found[r].name, mine.name) != 0)
        throw DistributedError(
            concat("new_group(): expected all ranks to make the same group; rank ", options_.rank,
                   " makes '", options_.group, "', rank ", r, " makes '", found[r].name, "'"));
      number_ = number_ * 0x9e3779b97f4a7c15u + found[r].count;
    }
  }

  // All members are here, so that these calls end.
  void make_communicators() {
    const std::lock_guard lock(library_.mutex());
    MPI_Group world, members;
    MPI_Comm_group(library_.world(), &world);
    MPI_Group_incl(world, options_.size, world_ranks_.data(), &members);
    check_mpi(MPI_Comm_create_group(library_.world(), members, 0, &comm_), "MPI_Comm_create_group");
    MPI_Group_free(&members);
    MPI_Group_free(&world);
    check_mpi(MPI_Comm_dup(comm_, &messages_comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(messages_comm_, MPI_ERRORS_RETURN);
  }

  // --- waiting

  template <class Done>
  void wait(const CallRecord& call, int peer, Done&& done) {
    PeerTable::Patience patience;
    Backoff backoff;
    Deadline next = Clock::now() + between_looks;
    while (!done()) {
      backoff.pause();
      if (Clock::now() < next) continue;
      peers_.look_around(call, peer, patience);
      next = Clock::now() + between_looks;
    }
  }

  // Runs a step that may find the connection to `peer` broken.
  template <class F>
  void named(const CallRecord& call, int peer, F&& f) {
    try {
      f();
    } catch (const std::exception& e) {
      peers_.fail_connection(call, peer, e.what());
    }
  }

  void await(const CallRecord& call, int peer, Transfer& transfer) {
    wait(call, peer, [&] {
      bool moved = false;
      named(call, peer, [&] { moved = transfer.test(); });
      return moved;
    });
  }

  // --- exchanges

  void exchange(const CallRecord& call, const std::vector<OutPart>& out,
                const std::vector<InPart>& in) override {
    exchange_tagged(call, out, in, data_tag);
  }

  size_t most_packet_data() const override { return packet_data; }

  const Packets& exchange_packets(const CallRecord& call,
                                  const std::vector<OutPart>& out) override {
    std::vector<OutPart> sent;
    std::vector<InPart> received;
    for (size_t r = 0; r < ranks(); ++r) {
      sent.push_back({packets_out_.packet(r), packets_out_.put(r, call, out[r])});
      received.push_back({packets_in_.packet(r), packets_in_.stride()});
    }
    packets_in_.put(static_cast<size_t>(options_.rank), call, {});
    exchange_tagged(call, sent, received, packet_tag);
    return packets_in_;
  }

  void exchange_tagged(const CallRecord& call, const std::vector<OutPart>& out,
                       const std::vector<InPart>& in, int tag) {
    std::vector<Transfer> receives(ranks()), sends(ranks());
    const auto other = [&](int i) { return (options_.rank + i) % options_.size; };
    for (int i = 1; i < options_.size; ++i) {
      const int from = other(options_.size - i);
      const InPart& part = in[static_cast<size_t>(from)];
      if (part.bytes == 0) continue;
      named(call, from, [&] {
        receives[static_cast<size_t>(from)].receive(part.data, part.bytes, from, tag, comm_);
      });
    }
    for (int i = 1; i < options_.size; ++i) {
      const int to = other(i);
      const OutPart& part = out[static_cast<size_t>(to)];
      if (part.bytes == 0) continue;
      named(call, to,
            [&] { sends[static_cast<size_t>(to)].send(part.data, part.bytes, to, tag, comm_); });
    }
    for (int r = 0; r < options_.size; ++r) {
      await(call, r, receives[static_cast<size_t>(r)]);
      await(call, r, sends[static_cast<size_t>(r)]);
    }
  }

  // --- messages

  int header_tag(const CallRecord& record) const {
    check_value(record.tag >= 0 && record.tag <= library_.most_tag() / 2, name_of(record.call),
                "(): expected a tag from 0 to ", library_.most_tag() / 2, " over MPI; got ",
                record.tag);
    return record.tag * 2;
  }
  static int body_tag(uint64_t number) { return static_cast<int>(number % 16000) * 2 + 1; }

  std::shared_ptr<Message> new_message(const CallRecord& record) {
    peers_.check_usable();
    peers_.note_thread(record.thread);
    header_tag(record);
    auto m = std::make_shared<Message>();
    m->record = record;
    m->source = record.root;
    return m;
  }
  uint64_t keep(std::shared_ptr<Message> m) {
    const std::lock_guard lock(mutex_);
    messages_[++last_message_] = std::move(m);
    return last_message_;
  }
  std::shared_ptr<Message> message(uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto it = messages_.find(id);
    return it == messages_.end() ? nullptr : it->second;
  }

  // Goes on with a message; true when it is done.
  bool step(Message& m) {
    peers_.check_usable();
    const std::lock_guard lock(m.mutex);
    bool done = false;
    named(m.record, m.record.root, [&] { done = m.first.test(m.receives ? &m.source : nullptr); });
    if (!done) return false;
    if (m.receives && !m.header_done) {
      m.header_done = true;
      accept(m);
    }
    named(m.record, m.source, [&] { done = m.body.test(); });
    if (done && m.sends) {
      m.sends = false;
      peers_.end_send();
    }
    return done;
  }

  void accept(Message& m) {
    const CallRecord& found = m.header.record;
    if (found.dtype != m.record.dtype || found.count != m.record.count)
      peers_.fail(concat(
          "group '", options_.group,
          "': expected a message of the same dtype and size at both ranks; got\n  rank ", m.source,
          ": ", text_of(found), "\n  rank ", options_.rank, ": ", text_of(m.record)));
    const size_t bytes = bytes_of(m.record);
    if (bytes == 0) return;
    if (bytes <= sizeof m.header.data) {
      std::memcpy(m.to, m.header.data, bytes);
      return;
    }
    named(m.record, m.source, [&] {
      m.body.receive(m.to, bytes, m.source, body_tag(m.header.number), messages_comm_);
    });
  }

  // --- what ranks tell each other

  void tell_all(const NewsMessage& news) {
    if (news.kind == News::Broken) library_.forgo_end();
    const std::lock_guard lock(mutex_);
    for (Talk& t : talks_) t.to_tell.push_back(news);
    changed_.notify_all();
  }

  void talk() {
    GroupNews heard;
    Transfer hearing;
    bool closes = false;
    std::unique_lock lock(mutex_);
    while (!closes || Clock::now() < close_by_) {
      closes = closing_;
      lock.unlock();
      bool told = true;
      try {
        hear(hearing, heard);
        for (int r = 0; r < options_.size; ++r)
          if (r != options_.rank) told &= tell(r, closes);
      } catch (const std::exception&) {
        lock.lock();
        break;  // who waits for that rank finds out, too
      }
      lock.lock();
      if (closes && told && all_ended()) break;
      changed_.wait_for(lock, std::chrono::milliseconds(closes ? 1 : 10));
    }
    hearing.cancel();
  }

  bool all_ended() {
    for (int r = 0; r < options_.size; ++r)
      if (r != options_.rank && !talks_[static_cast<size_t>(r)].ends) return false;
    return true;
  }

  void hear(Transfer& hearing, GroupNews& heard) {
    int from = -1;
    while (!hearing.is_begun() || hearing.test(&from)) {
      if (from >= 0 && heard.group == number_) {
        peers_.heard(from, heard.news);
        if (heard.news.kind != News::Alive) talks_[static_cast<size_t>(from)].ends = true;
        if (heard.news.kind == News::Failed) library_.linger();
        // A rank that has left before waits for those that say why they end.
        if (heard.news.kind == News::Broken && !closing_) {
          library_.forgo_end();
          library_.linger();
        }
      }
      hearing = Transfer();
      hearing.receive(&heard, sizeof heard, -1, news_tag, comm_);
      from = -1;
    }
  }

  // True if there is nothing left to tell a rank.
  bool tell(int r, bool closes) {
    Talk& t = talks_[static_cast<size_t>(r)];
    if (!t.told.test()) return false;
    const std::lock_guard lock(mutex_);
    if (t.to_tell.empty()) {
      if (closes || Clock::now() < t.next_beat || peers_.has_ended(r)) return true;
      t.to_tell.push_back(peers_.news(News::Alive));
    }
    t.telling = {number_, t.to_tell.front()};
    t.to_tell.pop_front();
    t.next_beat = Clock::now() + peers_.between_news();
    t.told = Transfer();
    t.told.send(&t.telling, sizeof t.telling, r, news_tag, comm_);
    return false;
  }

  // Lets what is to be told be told, for a while, takes the farewells of others, so that MPI does
  // not complain of messages that nobody took, and ends the thread.
  void close(std::chrono::milliseconds patience) {
    if (closed_) return;
    closed_ = true;
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      close_by_ = Clock::now() + patience;
      changed_.notify_all();
    }
    if (talker_.joinable()) talker_.join();
    keep_unfinished();
    if (!library_.ends() || comm_ == MPI_COMM_NULL) return;
    const std::lock_guard lock(library_.mutex());
    MPI_Comm_free(&messages_comm_);
    MPI_Comm_free(&comm_);
  }

  // What nobody took may be read from its memory yet, perhaps much later.
  void keep_unfinished() {
    struct Unfinished {
      std::vector<Talk> talks;
      std::map<uint64_t, std::shared_ptr<Message>> messages;
    };
    static auto* unfinished = new std::deque<Unfinished>;
    static std::mutex mutex;
    std::erase_if(messages_,
                  [](auto& m) { return m.second->first.is_empty() && m.second->body.is_empty(); });
    const bool all_told =
        std::all_of(talks_.begin(), talks_.end(), [](const Talk& t) { return t.told.is_empty(); });
    const std::lock_guard lock(mutex);
    if (!all_told || !messages_.empty())
      unfinished->push_back({std::move(talks_), std::move(messages_)});
  }

  const EngineOptions options_;
  MpiLibrary& library_;
  std::vector<int> world_ranks_;
  MPI_Comm comm_ = MPI_COMM_NULL, messages_comm_ = MPI_COMM_NULL;
  uint64_t number_ = 0;  // of the group, the same at all members
  std::mutex mutex_;
  std::condition_variable changed_;
  PeerTable peers_;
  std::vector<Talk> talks_;  // by rank
  Packets packets_in_{options_.size, packet_data}, packets_out_{options_.size, packet_data};
  std::map<uint64_t, std::shared_ptr<Message>> messages_;
  uint64_t last_message_ = 0;
  std::atomic<uint64_t> sent_{0};
  std::thread talker_;
  std::atomic<bool> closing_{false};
  bool closed_ = false;
  Deadline close_by_{};
};

}  // namespace
}  // namespace facula::distributed

extern "C" __attribute__((visibility("default"))) facula::distributed::Engine* facula_new_engine(
    const facula::distributed::EngineOptions& options) {
  return new facula::distributed::MpiEngine(options);
}

// The rank and the number of processes that mpirun has started.
extern "C" __attribute__((visibility("default"))) void facula_engine_world(int* rank, int* size) {
  auto& library = facula::distributed::MpiLibrary::get();
  *rank = library.rank();
  *size = library.size();
}
