// The engine over Gloo's connections, for ranks on several machines. Collectives are those of
// exchange.h, so that reductions keep the order of ranks.
//
// Each other rank has two threads that sleep nearly always: one receives what it tells of itself
// (signs of life, errors, that it leaves), the other tells it the same of this rank. A connection
// that breaks shows in the first at once.
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/environment.h"
#include "distributed/call_text.h"
#include "distributed/exchange.h"
#include "distributed/peer_table.h"

namespace facula::distributed {
namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
constexpr auto no_timeout = std::chrono::hours(24 * 365);

// Streams between two ranks, apart from each other.
constexpr uint64_t control_slot = 1, data_slot = 2, packet_slot = 3;
constexpr uint64_t header_slot(int tag) { return (uint64_t{1} << 40) + static_cast<uint32_t>(tag); }
// With its size, so that a receive of another size never meets the message, which Gloo would not
// survive: the record that goes first tells of the difference.
constexpr uint64_t body_slot(int tag, size_t bytes) {
  const uint64_t key = (uint64_t{static_cast<uint32_t>(tag)} << 32) ^ (bytes * 0x9e3779b97f4a7c15u);
  return key | (uint64_t{1} << 63);
}

// How this rank and another tell each other news.
struct Talk {
  std::thread listener, speaker;
  NewsMessage heard, told;
  Buffer heard_buffer, told_buffer;
  std::deque<NewsMessage> to_tell;
  int64_t told_ms = 0;
  bool ended = false;
};

std::string own_address() {
  if (const char* name = environment_value("GLOO_SOCKET_IFNAME"))
    return std::string("iface ") + name;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return host;
}

std::shared_ptr<gloo::transport::Device> new_device() {
  gloo::transport::tcp::attr attr;
  const std::string place = own_address();
  if (place.rfind("iface ", 0) == 0) {
    attr.iface = place.substr(6);
    return gloo::transport::tcp::CreateDevice(attr);
  }
  try {
    attr.hostname = place;
    return gloo::transport::tcp::CreateDevice(attr);
  } catch (const std::exception&) {  // a machine whose name has no address
    attr.hostname = "127.0.0.1";
    return gloo::transport::tcp::CreateDevice(attr);
  }
}

class GlooEngine final : public Engine, private Exchanger {
 public:
  explicit GlooEngine(const EngineOptions& options)
      : options_(options),
        device_(new_device()),
        context_(device_->createContext(options.rank, options.size)),
        peers_(options, [this](const NewsMessage& news) { tell_all(news); }),
        talks_(ranks()) {
    context_->setTimeout(options.timeout);
  }
  ~GlooEngine() override { close(); }

  const char* name() const override { return "gloo"; }

  // For each rank the address of the connection that waits for it: a length and bytes.
  std::string address() override {
    std::string text;
    for (int r = 0; r < options_.size; ++r) {
      std::vector<char> bytes;
      if (r != options_.rank) bytes = context_->createPair(r)->address().bytes();
      const auto n = static_cast<uint32_t>(bytes.size());
      text.append(reinterpret_cast<const char*>(&n), sizeof n);
      text.append(bytes.data(), bytes.size());
    }
    return text;
  }

  bool connect(const std::vector<std::string>& addresses) override {
    check_value(addresses.size() == ranks(), "connect(): expected ", options_.size,
                " addresses; got ", addresses.size());
    for (int r = 0; r < options_.size; ++r)
      if (r != options_.rank)
        context_->getPair(r)->connect(part_of(addresses[static_cast<size_t>(r)], options_.rank));
    ticker_ = std::thread([this] { tick(); });
    peers_.start_listening();
    for (auto& round : rounds_) round = std::make_unique<Round>(*this, most_packet_data());
    for (int r = 0; r < options_.size; ++r)
      if (r != options_.rank) start_talking(r);
    return true;
  }

  void run(Collective& call) override { run_by_exchange(call, options_, peers_, *this); }

  uint64_t begin_send(const CallRecord& record, const void* data) override {
    peers_.check_usable();
    peers_.note_thread(record.thread);
    auto m = std::make_unique<Message>();
    m->record = record;
    m->sends = true;
    peers_.begin_send();
    m->header = buffer(&m->record, sizeof m->record);
    m->body = buffer(const_cast<void*>(data), bytes_of(record));
    named(record, record.root, [&] {
      m->header->send(record.root, header_slot(record.tag));
      if (m->body->size > 0) m->body->send(record.root, body_slot(record.tag, m->body->size));
    });
    return keep(std::move(m));
  }

  uint64_t begin_receive(const CallRecord& record, void* data) override {
    peers_.check_usable();
    peers_.note_thread(record.thread);
    auto m = std::make_unique<Message>();
    m->record = record;
    m->to = data;
    m->header = buffer(&m->found, sizeof m->found);
    named(record, record.root, [&] {
      if (record.root >= 0) {
        m->header->recv(record.root, header_slot(record.tag));
        return receive_body(*m);
      }
      std::vector<int> others;
      for (int r = 0; r < options_.size; ++r)
        if (r != options_.rank) others.push_back(r);
      m->header->recv(others, header_slot(record.tag));
    });
    return keep(std::move(m));
  }

  int finish(uint64_t id) override {
    Message& m = message(id);
    peers_.wait_for(m.record);
    struct Ended {
      PeerTable& peers;
      ~Ended() { peers.wait_for({}); }
    } const ended{peers_};
    while (!step(m, true)) {
    }
    const int other = m.record.root;
    const std::lock_guard lock(mutex_);
    messages_.erase(id);
    return other;
  }

  bool test(uint64_t id) override {
    {
      const std::lock_guard lock(mutex_);
      if (!messages_.contains(id)) return true;
    }
    return step(message(id), false);
  }

  void abort(const std::string& reason) override {
    peers_.put_error(concat("group '", options_.group, "': ", reason));
  }

  void leave(const std::string& error) override {
    tell_all(peers_.news(error.empty() ? News::Left : News::Failed, error));
    close();
  }

  void set_timeout(std::chrono::milliseconds timeout) override { peers_.set_timeout(timeout); }
  void beat() override { changed_.notify_all(); }

  std::string table() override { return peers_.table(); }

 private:
  struct Message {
    CallRecord record, found;
    void* to = nullptr;
    bool sends = false, header_done = false, done = false;
    Buffer header, body;
  };

  size_t ranks() const { return static_cast<size_t>(options_.size); }
  static size_t bytes_of(const CallRecord& r) {
    return static_cast<size_t>(r.count) * itemsize(r.dtype);
  }
  Buffer buffer(void* data, size_t bytes) { return context_->createUnboundBuffer(data, bytes); }

  static std::vector<char> part_of(const std::string& address, int rank) {
    size_t at = 0;
    for (int r = 0;; ++r) {
      uint32_t n = 0;
      check(at + sizeof n <= address.size(), "connect(): expected the address of a rank over Gloo");
      std::memcpy(&n, address.data() + at, sizeof n);
      at += sizeof n;
      check(n <= address.size() - at, "connect(): expected the address of a rank over Gloo");
      if (r == rank)
        return {address.begin() + static_cast<std::ptrdiff_t>(at),
                address.begin() + static_cast<std::ptrdiff_t>(at + n)};
      at += n;
    }
  }

  // --- exchanges

  void exchange(const CallRecord& call, const std::vector<OutPart>& out,
                const std::vector<InPart>& in) override {
    std::vector<std::pair<int, Buffer>> receives, sends;
    for (int i = 1; i < options_.size; ++i) {
      const int from = (options_.rank + options_.size - i) % options_.size;
      const InPart& part = in[static_cast<size_t>(from)];
      if (part.bytes == 0) continue;
      receives.emplace_back(from, buffer(part.data, part.bytes));
      named(call, from, [&] { receives.back().second->recv(from, data_slot); });
    }
    for (int i = 1; i < options_.size; ++i) {
      const int to = (options_.rank + i) % options_.size;
      const OutPart& part = out[static_cast<size_t>(to)];
      if (part.bytes == 0) continue;
      sends.emplace_back(to, buffer(const_cast<void*>(part.data), part.bytes));
      named(call, to, [&] { sends.back().second->send(to, data_slot); });
    }
    PeerTable::Patience patience;
    for (auto& [from, b] : receives) await(call, from, *b, false, patience);
    for (auto& [to, b] : sends) await(call, to, *b, true, patience);
  }

  // Packets have memory of their own, of which the part for the next round is offered to the other
  // ranks before this one needs it: they may then send without asking first.
  struct Round {
    Round(GlooEngine& engine, size_t most_data)
        : in(engine.options_.size, most_data), out(engine.options_.size, most_data) {
      for (size_t r = 0; r < engine.ranks(); ++r) {
        in_buffers.push_back(engine.buffer(in.packet(r), in.stride()));
        out_buffers.push_back(engine.buffer(out.packet(0), out.all_bytes()));
      }
    }
    Packets in, out;
    std::vector<Buffer> in_buffers, out_buffers;
  };

  // Large enough that one way through the network does for most calls, small for many ranks: the
  // data of some calls goes to all of them.
  size_t most_packet_data() const override {
    constexpr size_t least = 1792, most = 64 * 1024;
    return std::clamp(4 * most / ranks(), least, most);
  }

  void offer(const CallRecord& call, Round& round) {
    for (int r = 0; r < options_.size; ++r)
      if (r != options_.rank)
        named(call, r, [&] { round.in_buffers[static_cast<size_t>(r)]->recv(r, packet_slot); });
  }

  // What goes to several ranks is copied once.
  void send_packets(const CallRecord& call, const std::vector<OutPart>& out, Round& round) {
    const OutPart* last = nullptr;
    size_t at = 0, bytes = 0;
    for (int i = 1; i < options_.size; ++i) {
      const int to = other(i);
      const auto r = static_cast<size_t>(to);
      if (last == nullptr || last->data != out[r].data || last->bytes != out[r].bytes) {
        bytes = round.out.put(r, call, out[r]);
        at = r * round.out.stride();
      }
      last = &out[r];
      named(call, to, [&] { round.out_buffers[r]->send(to, packet_slot, at, bytes); });
    }
  }

  const Packets& exchange_packets(const CallRecord& call,
                                  const std::vector<OutPart>& out) override {
    Round& round = *rounds_[packet_rounds_ & 1];
    if (packet_rounds_ == 0) offer(call, round);
    send_packets(call, out, round);
    round.in.put(static_cast<size_t>(options_.rank), call, {});
    offer(call, *rounds_[++packet_rounds_ & 1]);
    PeerTable::Patience patience;
    for (int i = 1; i < options_.size; ++i)
      await(call, other(i), *round.in_buffers[static_cast<size_t>(other(i))], false, patience);
    for (int i = 1; i < options_.size; ++i)
      await(call, other(i), *round.out_buffers[static_cast<size_t>(other(i))], true, patience);
    return round.in;
  }

  // The rank that comes so many after this one.
  int other(int i) const { return (options_.rank + i) % options_.size; }

  // --- waiting

  void await(const CallRecord& call, int peer, gloo::transport::UnboundBuffer& b, bool sends,
             PeerTable::Patience& patience) {
    while (!wait_a_little(call, peer, b, sends, nullptr)) peers_.look_around(call, peer, patience);
  }

  // Waits until the buffer has moved, or the ticker wakes this thread: then false.
  bool wait_a_little(const CallRecord& call, int peer, gloo::transport::UnboundBuffer& b,
                     bool sends, int* source) {
    const Waiter waiter{&b, sends};
    {
      const std::lock_guard lock(waiters_mutex_);
      waiters_.insert(&waiter);
    }
    struct Forget {
      GlooEngine& engine;
      const Waiter* waiter;
      ~Forget() {
        const std::lock_guard lock(engine.waiters_mutex_);
        engine.waiters_.erase(waiter);
      }
    } const forget{*this, &waiter};
    bool moved = false;
    named(call, peer, [&] {
      moved = sends ? b.waitSend(nullptr, no_timeout) : b.waitRecv(source, no_timeout);
    });
    return moved;
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

  // Wakes those that wait, so that they look around: Gloo would close all connections after a
  // timeout of its own.
  void tick() {
    std::unique_lock lock(waiters_mutex_);
    while (!closing_) {
      ticked_.wait_for(lock, std::chrono::milliseconds(20));
      for (const Waiter* w : waiters_)
        w->sends ? w->buffer->abortWaitSend() : w->buffer->abortWaitRecv();
    }
  }

  // --- messages

  uint64_t keep(std::unique_ptr<Message> m) {
    const std::lock_guard lock(mutex_);
    messages_[++last_message_] = std::move(m);
    return last_message_;
  }
  Message& message(uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto it = messages_.find(id);
    check(it != messages_.end(), "wait(): this message has been waited for already");
    return *it->second;
  }

  // Goes on with a message; true when it is done.
  bool step(Message& m, bool patient) {
    if (m.done) return true;
    if (!m.header_done) {
      int source = m.record.root;
      if (!wait_part(m, *m.header, patient, &source)) return false;
      m.header_done = true;
      if (!m.sends) accept(m, source);
    }
    if (m.body->size > 0 && !wait_part(m, *m.body, patient, nullptr)) return false;
    if (m.sends) peers_.end_send();
    return m.done = true;
  }

  bool wait_part(Message& m, gloo::transport::UnboundBuffer& b, bool patient, int* source) {
    PeerTable::Patience patience;
    while (!wait_a_little(m.record, m.record.root, b, m.sends, source)) {
      if (!patient) return false;
      peers_.look_around(m.record, m.record.root, patience);
    }
    return true;
  }

  void accept(Message& m, int source) {
    m.record.root = source;
    if (m.found.dtype != m.record.dtype || m.found.count != m.record.count)
      peers_.fail(concat(
          "group '", options_.group,
          "': expected a message of the same dtype and size at both ranks; got\n  rank ", source,
          ": ", text_of(m.found), "\n  rank ", options_.rank, ": ", text_of(m.record)));
    if (!m.body) named(m.record, source, [&] { receive_body(m); });
  }

  void receive_body(Message& m) {
    m.body = buffer(m.to, bytes_of(m.record));
    if (m.body->size > 0) m.body->recv(m.record.root, body_slot(m.record.tag, m.body->size));
  }

  // --- what ranks tell each other

  void start_talking(int r) {
    Talk& p = talks_[static_cast<size_t>(r)];
    p.heard_buffer = buffer(&p.heard, sizeof p.heard);
    p.told_buffer = buffer(&p.told, sizeof p.told);
    p.listener = std::thread([this, r] { listen(r); });
    p.speaker = std::thread([this, r] { speak(r); });
  }

  void listen(int r) {
    Talk& p = talks_[static_cast<size_t>(r)];
    try {
      while (true) {
        p.heard_buffer->recv(r, control_slot);
        if (!p.heard_buffer->waitRecv(nullptr, no_timeout)) return;  // this rank closes
        peers_.heard(r, p.heard);
      }
    } catch (const std::exception& e) {
      peers_.lost(r, "its connection has ended");
      const std::lock_guard lock(mutex_);
      p.ended = true;
    }
    changed_.notify_all();
  }

  void speak(int r) {
    Talk& p = talks_[static_cast<size_t>(r)];
    const int64_t between = peers_.between_news().count();
    std::unique_lock lock(mutex_);
    while (!p.ended) {
      if (p.to_tell.empty() && closing_) return;
      if (p.to_tell.empty() && clock_ms() - p.told_ms < between) {
        changed_.wait_for(lock, std::chrono::milliseconds(between));
        continue;
      }
      p.told = p.to_tell.empty() ? peers_.news(News::Alive) : p.to_tell.front();
      if (!p.to_tell.empty()) p.to_tell.pop_front();
      lock.unlock();
      try {
        p.told_buffer->send(r, control_slot);
        if (!p.told_buffer->waitSend(nullptr, no_timeout)) return;
      } catch (const std::exception&) {
        return;  // the listener sees that too
      }
      lock.lock();
      p.told_ms = clock_ms();
      changed_.notify_all();
    }
  }

  void tell_all(const NewsMessage& message) {
    const std::lock_guard lock(mutex_);
    for (int r = 0; r < options_.size; ++r)
      if (r != options_.rank) talks_[static_cast<size_t>(r)].to_tell.push_back(message);
    changed_.notify_all();
  }

  // Lets what is to be told be told, for half a second, and ends the threads.
  void close() {
    if (closed_) return;
    closed_ = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    {
      std::unique_lock lock(mutex_);
      closing_ = true;
      changed_.notify_all();
      const auto told = [this] {
        return std::all_of(talks_.begin(), talks_.end(),
                           [](const Talk& p) { return p.ended || p.to_tell.empty(); });
      };
      changed_.wait_until(lock, end, told);
    }
    changed_.notify_all();
    ticked_.notify_all();
    for (Talk& p : talks_) {
      if (p.listener.joinable()) {
        p.heard_buffer->abortWaitRecv();
        p.listener.join();
      }
      if (p.speaker.joinable()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        p.told_buffer->abortWaitSend();
        p.speaker.join();
      }
    }
    if (ticker_.joinable()) ticker_.join();
    for (int r = 0; r < options_.size; ++r)
      if (auto& pair = context_->getPair(r)) pair->close();
  }

  struct Waiter {
    gloo::transport::UnboundBuffer* buffer;
    bool sends;
  };

  const EngineOptions options_;
  const std::shared_ptr<gloo::transport::Device> device_;
  const std::shared_ptr<gloo::transport::Context> context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  PeerTable peers_;
  std::vector<Talk> talks_;  // by rank
  std::unique_ptr<Round> rounds_[2];
  uint64_t packet_rounds_ = 0;
  std::map<uint64_t, std::unique_ptr<Message>> messages_;
  uint64_t last_message_ = 0;
  std::mutex waiters_mutex_;
  std::condition_variable ticked_;
  std::set<const Waiter*> waiters_;
  std::thread ticker_;
  std::atomic<bool> closing_{false};
  bool closed_ = false;
};

}  // namespace
}  // namespace facula::distributed

extern "C" __attribute__((visibility("default"))) facula::distributed::Engine* facula_new_engine(
    const facula::distributed::EngineOptions& options) {
  return new facula::distributed::GlooEngine(options);
}
