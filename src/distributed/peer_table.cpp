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

NewsMessage PeerTable::news(News kind, const std::string& text) {
  NewsMessage message;
  message.kind = kind;
  std::memcpy(message.text, text.data(), std::min(text.size(), sizeof message.text));
  const std::lock_guard lock(mutex_);
  message.call = now_;
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
  check_peers(call, awaited);
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

void PeerTable::check_peers(const CallRecord& call, int awaited) {
  for (int r = 0; r < options_.size; ++r) {
    if (r == options_.rank) continue;
    const std::string lost = why_lost(r, awaited);
    if (!lost.empty())
      fail(concat("group '", options_.group, "': rank ", options_.rank, " waited in ",
                  text_of(call), "; rank ", r, lost));
  }
}

// Why nothing is to be expected of a rank any more; empty if something is.
std::string PeerTable::why_lost(int r, int awaited) {
  const std::lock_guard lock(mutex_);
  const Peer& p = peers_[static_cast<size_t>(r)];
  if (p.left) {
    if (!p.error.empty()) return concat(" ended with an error:\n", p.error);
    const Peer* self = &peers_[static_cast<size_t>(options_.rank)];
    const bool nobody_else =
        awaited < 0 &&
        std::all_of(
            peers_.begin(), peers_.end(), [&](const Peer& o) { return o.left || &o == self; });
    return r == awaited || nobody_else ? " has left the group" : "";
  }
  // What other ranks tell of the reason may be on its way.
  if (p.ended && clock_ms() - p.ended_ms < news_ms) return {};
  if (p.ended) return concat(" is lost: ", p.error);
  const int64_t silence = clock_ms() - p.heard_ms;
  if (silence <= options_.heartbeat.count()) return {};
  return concat(" is lost: it has given no sign of life for ", seconds(silence));
}

void PeerTable::fail_connection(const CallRecord& call, int rank, const std::string& why) {
  check_usable();
  for (int i = 0; i < 2 * news_ms / 5; ++i) {
    check_peers(call, rank);
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
