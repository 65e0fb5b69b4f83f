#include "distributed/peer_table.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/interrupts.h"
#include "distributed/call_text.h"

namespace facula::distributed {
namespace {

// How long news of a rank's end may take to come by way of others.
constexpr int64_t news_ms = 300;

std::string seconds(int64_t ms) { return concat(ms / 1000, ".", ms % 1000 / 100, " s"); }

}  // namespace

PeerTable::Patience::Patience() : since(clock_ms()) {}

PeerTable::PeerTable(const EngineOptions& options, TellAll tell_all)
    : options_(options),
      tell_all_(std::move(tell_all)),
      timeout_ms_(options.timeout.count()),
      peers_(static_cast<size_t>(options.size)) {}

void PeerTable::start_listening() {
  const std::lock_guard lock(mutex_);
  for (Peer& p : peers_) p.heard_ms = clock_ms();
}

void PeerTable::heard(int rank, const NewsMessage& news) {
  const std::string text(news.text, strnlen(news.text, sizeof news.text));
  const std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(rank)];
  p.heard_ms = clock_ms();
  p.call = news.call;
  p.message = news.message;
  p.can_wait = news.can_wait != 0;
  if (news.kind == News::Broken && error_.empty()) error_ = text;
  if (news.kind == News::Left || news.kind == News::Failed) p.left = true;
  if (news.kind == News::Failed) p.error = text;
}

void PeerTable::lost(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  Peer& p = peers_[static_cast<size_t>(rank)];
  if (!p.left && p.error.empty()) p.error = why;
  p.ended = true;
  p.ended_ms = clock_ms();
}

bool PeerTable::has_ended(int rank) {
  const std::lock_guard lock(mutex_);
  const Peer& p = peers_[static_cast<size_t>(rank)];
  return p.left || p.ended;
}

void PeerTable::begin(const CallRecord& call) {
  const std::lock_guard lock(mutex_);
  now_ = call;
}

void PeerTable::end() {
  const std::lock_guard lock(mutex_);
  now_.finished = 1;
}

void PeerTable::wait_for(const CallRecord& message) {
  const std::lock_guard lock(mutex_);
  message_ = message;
}

void PeerTable::note_thread(int32_t thread) {
  const std::lock_guard lock(mutex_);
  if (thread_ == 0) thread_ = thread;
  if (thread_ != thread) one_thread_ = false;
}

void PeerTable::begin_send() {
  const std::lock_guard lock(mutex_);
  ++sends_;
}

void PeerTable::end_send() {
  const std::lock_guard lock(mutex_);
  --sends_;
}

std::chrono::milliseconds PeerTable::between_news() const {
  const int64_t usual = std::clamp<int64_t>(options_.heartbeat.count() / 5, 50, 400);
  const int64_t most = std::max<int64_t>(usual, options_.heartbeat.count() / 4);
  return std::chrono::milliseconds(std::min(most, usual * std::max(1, options_.size / 32)));
}

NewsMessage PeerTable::news(News kind, const std::string& text) {
  NewsMessage message;
  message.kind = kind;
  std::memcpy(message.text, text.data(), std::min(text.size(), sizeof message.text));
  const std::lock_guard lock(mutex_);
  message.call = now_;
  message.message = message_;
  message.can_wait = can_wait();
  return message;
}

void PeerTable::check_usable() {
  const std::lock_guard lock(mutex_);
  if (!error_.empty()) throw DistributedError(error_);
}

void PeerTable::put_error(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_.empty()) return;
    error_ = text;
  }
  tell_all_(news(News::Broken, text));
}

void PeerTable::fail(const std::string& text) {
  put_error(text);
  check_usable();
  throw DistributedError(text);
}

void PeerTable::look_around(const CallRecord& call, int awaited, Patience& patience) {
  check_usable();
  check_peers(call, awaited, patience);
  const std::string circle = circle_with(awaited, call, patience);
  if (!circle.empty()) fail(circle);
  const int64_t waited = clock_ms() - patience.since;
  if (waited >= timeout_ms_.load())
    fail(concat("group '", options_.group, "': rank ", options_.rank, " timed out after ",
                seconds(timeout_ms_.load()), " in ", text_of(call), ", waiting for rank ", awaited,
                "\n", table()));
  if (!patience.told && waited >= options_.lag.count()) {
    patience.told = true;
    std::fprintf(stderr, "facula.distributed: rank %d has waited %s in %s for rank %d\n%s\n",
                 options_.rank, seconds(waited).c_str(), text_of(call).c_str(), awaited,
                 table().c_str());
  }
  try {
    poll_interrupts();
  } catch (...) {
    put_error(concat("group '", options_.group, "': the user interrupted rank ", options_.rank,
                     " in ", text_of(call)));
    throw;
  }
}

void PeerTable::check_peers(const CallRecord& call, int awaited, Patience& patience) {
  for (int r = 0; r < options_.size; ++r) {
    if (r == options_.rank) continue;
    const std::string lost = why_lost(r, awaited, patience);
    if (!lost.empty())
      fail(concat("group '", options_.group, "': rank ", options_.rank, " waited in ",
                  text_of(call), "; rank ", r, lost));
  }
}

// Why nothing is to be expected of a rank any more; empty if something is.
std::string PeerTable::why_lost(int r, int awaited, Patience& patience) {
  const std::lock_guard lock(mutex_);
  const Peer& p = peers_[static_cast<size_t>(r)];
  if (p.left) {
    if (!p.error.empty()) return concat(" ended with an error:\n", p.error);
    const Peer* self = &peers_[static_cast<size_t>(options_.rank)];
    const bool nobody_else =
        awaited < 0 &&
        std::all_of(
            peers_.begin(), peers_.end(), [&](const Peer& o) { return o.left || &o == self; });
    if (r != awaited && !nobody_else) return {};
    // What it sent before it left may have come in this moment: the caller looks once more.
    const bool again = patience.has_left;
    patience.has_left = true;
    return again ? " has left the group" : "";
  }
  // What other ranks tell of the reason may be on its way.
  if (p.ended && clock_ms() - p.ended_ms < news_ms) return {};
  if (p.ended) return concat(" is lost: ", p.error);
  const int64_t silence = clock_ms() - p.heard_ms;
  if (silence <= options_.heartbeat.count()) return {};
  return concat(" is lost: it has given no sign of life for ", seconds(silence));
}

const CallRecord* PeerTable::waits_for_us(const Peer& peer, const CallRecord& mine) const {
  const bool message = mine.call == Call::Send || mine.call == Call::Receive;
  if (peer.message.call != Call::None)
    // A message between the two may be under way.
    return peer.message.root == options_.rank && (!message || peer.message.call == mine.call)
               ? &peer.message
               : nullptr;
  const bool missed = message && peer.call.sequence > now_.sequence && !peer.call.finished &&
                      !peer.call.async && (now_.sequence == 0 || now_.finished);
  return missed ? &peer.call : nullptr;
}

// Two ranks that wait for each other, and of which the other has said so for a second: neither will
// ever come. Ranks that may yet do something in another thread are left alone. Both may find it in
// the same moment: the text is the same at both.
std::string PeerTable::circle_with(int r, const CallRecord& mine, Patience& patience) {
  if (r < 0 || r == options_.rank || mine.async) return {};
  const std::lock_guard lock(mutex_);
  const Peer& peer = peers_[static_cast<size_t>(r)];
  const CallRecord* other = can_wait() && peer.can_wait ? waits_for_us(peer, mine) : nullptr;
  const uint64_t stamp =
      other == nullptr ? 0 : static_cast<uint64_t>(other->started_ms) * 31 + other->sequence + 1;
  if (stamp != patience.circle) {
    patience.circle = stamp;
    patience.circle_since = peer.heard_ms;
  }
  if (stamp == 0 || peer.heard_ms - patience.circle_since < 1000) return {};
  const auto line = [](int who, const CallRecord& call, int whom) {
    return concat("\n  rank ", who, " waits in ", text_of(call), " for rank ", whom);
  };
  const std::string ours = line(options_.rank, mine, r), theirs = line(r, *other, options_.rank);
  return concat("group '", options_.group,
                "': ranks wait for each other:", options_.rank < r ? ours + theirs : theirs + ours);
}

void PeerTable::fail_connection(const CallRecord& call, int rank, const std::string& why) {
  check_usable();
  Patience patience;
  for (int i = 0; i < 2 * news_ms / 5; ++i) {
    check_peers(call, rank, patience);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    check_usable();
  }
  fail(concat("group '", options_.group, "': rank ", options_.rank, " in ", text_of(call),
              ": the connection to rank ", rank, " failed: ", why));
}

// Of other ranks as they were when they were last heard of.
std::string PeerTable::line(int r) const {
  const Peer& p = peers_[static_cast<size_t>(r)];
  const CallRecord& call = r == options_.rank ? now_ : p.call;
  const std::string who = concat("  rank ", r, ": ");
  if (p.left) return who + "has left";
  if (p.ended) return who + "is lost";
  const std::string heard =
      r == options_.rank ? "" : concat(" (heard ", seconds(clock_ms() - p.heard_ms), " ago)");
  if (call.sequence == 0) return concat(who, "has made no call", heard);
  return concat(who, call.finished ? "in no call; its last was collective " : "in collective ",
                call.sequence, ", ", text_of(call), heard);
}

std::string PeerTable::table() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (int r = 0; r < options_.size; ++r) text += concat(r ? "\n" : "", line(r));
  return text;
}

}  // namespace facula::distributed
