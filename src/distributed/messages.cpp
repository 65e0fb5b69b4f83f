#include "distributed/messages.h"

#include <unistd.h>

#include <algorithm>

#include "distributed/bytes.h"
#include "distributed/call_text.h"

namespace facula::distributed {
namespace {

// Copies as many bytes as there is room for, or as there are; returns their number.
size_t put(Channel& c, size_t capacity, const void* from, size_t bytes, bool whole = false) {
  const uint64_t written = c.written.load(std::memory_order_relaxed);
  const uint64_t room = capacity - (written - c.read.load(std::memory_order_acquire));
  const size_t n = std::min<size_t>(bytes, room);
  if (n == 0 || (whole && n < bytes)) return 0;
  const size_t at = written % capacity, first = std::min(n, capacity - at);
  copy_bytes(c.bytes() + at, from, first);
  copy_bytes(c.bytes(), static_cast<const std::byte*>(from) + first, n - first);
  c.written.store(written + n, std::memory_order_release);
  return n;
}

size_t get(Channel& c, size_t capacity, void* to, size_t bytes, bool whole = false) {
  const uint64_t read = c.read.load(std::memory_order_relaxed);
  const size_t n = std::min<size_t>(bytes, c.written.load(std::memory_order_acquire) - read);
  if (n == 0 || (whole && n < bytes)) return 0;
  const size_t at = read % capacity, first = std::min(n, capacity - at);
  copy_bytes(to, c.bytes() + at, first);
  copy_bytes(static_cast<std::byte*>(to) + first, c.bytes(), n - first);
  c.read.store(read + n, std::memory_order_release);
  return n;
}

}  // namespace

Messages::Messages(Arena& arena) : arena_(arena) {
  const auto n = static_cast<size_t>(arena.size());
  sends_.resize(n);
  incoming_.resize(n);
  kept_.resize(n);
}

Messages::~Messages() {
  stopping_ = true;
  if (background_.joinable()) background_.join();
}

int64_t Messages::bytes_of(const CallRecord& record) {
  return record.count * static_cast<int64_t>(itemsize(record.dtype));
}

uint64_t Messages::begin_send(const CallRecord& record, const void* data) {
  arena_.check_broken();
  arena_.note_thread(record.thread);
  const std::lock_guard lock(mutex_);
  const uint64_t id = next_++;
  messages_[id] = {record, static_cast<const std::byte*>(data), nullptr};
  sends_[static_cast<size_t>(record.root)].push_back(id);
  move();
  return id;
}

uint64_t Messages::begin_receive(const CallRecord& record, void* data) {
  arena_.check_broken();
  arena_.note_thread(record.thread);
  const std::lock_guard lock(mutex_);
  const uint64_t id = next_++;
  messages_[id] = {record, nullptr, static_cast<std::byte*>(data)};
  receives_.push_back(id);
  for (int r = 0; r < arena_.size(); ++r) take_kept(r);
  move();
  return id;
}

bool Messages::move() {
  if (arena_.is_broken()) return false;
  bool moved = false;
  for (int r = 0; r < arena_.size(); ++r) {
    const bool wrote = write(r), took = read(r);
    if (wrote || took) arena_.ring(r);
    moved |= wrote || took;
  }
  return moved;
}

bool Messages::write(int to) {
  std::deque<uint64_t>& queue = sends_[static_cast<size_t>(to)];
  bool moved = false;
  while (!queue.empty()) {
    Message& m = messages_[queue.front()];
    Channel& channel = arena_.channel(arena_.rank(), to);
    const size_t capacity = arena_.channel_capacity();
    if (m.moved < 0) {
      if (put(channel, capacity, &m.record, sizeof m.record, true) == 0) return moved;
      m.moved = 0;
    }
    const int64_t left = bytes_of(m.record) - m.moved;
    m.moved +=
        static_cast<int64_t>(put(channel, capacity, m.from + m.moved, static_cast<size_t>(left)));
    moved = true;
    if (m.moved < bytes_of(m.record)) return moved;
    m.done = true;
    queue.pop_front();
  }
  return moved;
}

bool Messages::read(int from) {
  bool moved = false;
  const auto f = static_cast<size_t>(from);
  while (true) {
    if (!incoming_[f] && (receives_.empty() || !begin_incoming(from))) return moved;
    Incoming& in = *incoming_[f];
    std::byte* to = in.receive ? messages_[in.receive].to : in.kept.data();
    const int64_t left = bytes_of(in.record) - in.moved;
    if (left > 0) {
      const size_t n = get(arena_.channel(from, arena_.rank()), arena_.channel_capacity(),
                           to + in.moved, static_cast<size_t>(left));
      in.moved += static_cast<int64_t>(n);
      moved |= n > 0;
      if (in.moved < bytes_of(in.record)) return moved;
    }
    moved = true;
    end_incoming(from);
  }
}

bool Messages::begin_incoming(int from) {
  CallRecord record;
  if (get(arena_.channel(from, arena_.rank()), arena_.channel_capacity(), &record, sizeof record,
          true) == 0)
    return false;
  auto in = std::make_unique<Incoming>();
  in->record = record;
  in->receive = matching_receive(from, record);
  if (in->receive)
    accept(in->receive, from, record);
  else
    in->kept.resize(static_cast<size_t>(bytes_of(record)));
  incoming_[static_cast<size_t>(from)] = std::move(in);
  return true;
}

void Messages::end_incoming(int from) {
  const auto f = static_cast<size_t>(from);
  const std::unique_ptr<Incoming> in = std::move(incoming_[f]);
  if (in->receive) {
    messages_[in->receive].done = true;
    return;
  }
  kept_[f].push_back(std::make_unique<Incoming>(std::move(*in)));
  take_kept(from);
}

uint64_t Messages::matching_receive(int from, const CallRecord& record) const {
  for (const uint64_t id : receives_) {
    const CallRecord& wanted = messages_.at(id).record;
    if ((wanted.root == from || wanted.root < 0) && wanted.tag == record.tag) return id;
  }
  return 0;
}

// The receive is given to a message of `from`.
void Messages::accept(uint64_t receive, int from, const CallRecord& record) {
  std::erase(receives_, receive);
  Message& m = messages_[receive];
  m.record.root = from;
  if (m.record.dtype != record.dtype || m.record.count != record.count)
    arena_.fail(
        concat("group '", arena_.options().group,
               "': expected a message of the same dtype and size at both ranks; got\n  rank ", from,
               ": ", text_of(record), "\n  rank ", arena_.rank(), ": ", text_of(m.record)));
}

void Messages::take_kept(int from) {
  auto& kept = kept_[static_cast<size_t>(from)];
  for (size_t i = 0; i < kept.size();) {
    const uint64_t receive = matching_receive(from, kept[i]->record);
    if (receive == 0) {
      ++i;
      continue;
    }
    accept(receive, from, kept[i]->record);
    Message& m = messages_[receive];
    if (!kept[i]->kept.empty()) copy_bytes(m.to, kept[i]->kept.data(), kept[i]->kept.size());
    m.done = true;
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Messages::forget(uint64_t message) {
  std::erase(receives_, message);
  for (auto& queue : sends_) std::erase(queue, message);
  for (auto& in : incoming_)
    if (in && in->receive == message) in.reset();
  messages_.erase(message);
}

bool Messages::test(uint64_t message) {
  const std::lock_guard lock(mutex_);
  arena_.check_broken();
  move();
  const auto it = messages_.find(message);
  return it == messages_.end() || it->second.done;
}

// Whom a message is awaited from: for one of any rank those that have not left, or all if all have.
std::vector<int> Messages::awaited(const CallRecord& record) const {
  if (record.root >= 0) return {record.root};
  std::vector<int> others, present;
  for (int r = 0; r < arena_.size(); ++r) {
    if (r == arena_.rank()) continue;
    others.push_back(r);
    if (!arena_.has_left(r)) present.push_back(r);
  }
  return present.empty() ? others : present;
}

int Messages::finish(uint64_t message) {
  CallRecord record;
  {
    const std::lock_guard lock(mutex_);
    const auto it = messages_.find(message);
    check(it != messages_.end(), "wait(): this message has been waited for already");
    record = it->second.record;
  }
  CallRecord& shown = arena_.mine().message;
  try {
    shown = record;
    shown.thread = gettid();
    arena_.wait(
        record, [&] { return test(message); },
        [&] { return test(message) ? std::vector<int>{} : awaited(record); });
    shown = {};
    const std::lock_guard lock(mutex_);
    const int other = messages_[message].record.root;
    forget(message);
    return other;
  } catch (...) {
    shown = {};
    const std::lock_guard lock(mutex_);
    forget(message);
    throw;
  }
}

void Messages::pursue() {
  const std::lock_guard lock(mutex_);
  if (in_background_) return;
  if (background_.joinable()) background_.join();
  in_background_ = true;
  background_ = std::thread([this] { move_in_background(); });
}

void Messages::move_in_background() {
  const auto nothing_left = [this] {
    const std::lock_guard lock(mutex_);
    move();
    const bool idle = std::all_of(messages_.begin(), messages_.end(),
                                  [](const auto& m) { return m.second.done; });
    if (idle || stopping_ || arena_.is_broken()) in_background_ = false;
    return !in_background_;
  };
  try {
    arena_.wait_quietly(nothing_left);
  } catch (const std::exception&) {
    // A message that does not fit: the error is in the arena, where whoever waits finds it.
    in_background_ = false;
  }
}

}  // namespace facula::distributed
