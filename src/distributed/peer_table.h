// What a rank of an engine over a network knows of the others, and the errors that follow from it.
//
// Engines say what they hear (signs of life, errors, farewells) and which connections end; whoever
// waits looks around here.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/engine.h"

namespace facula::distributed {

enum class News : uint32_t { Alive, Left, Failed, Broken };

// What ranks tell of themselves, now and then and when they end.
struct NewsMessage {
  News kind = News::Alive;
  CallRecord call;        // the last collective of the rank
  CallRecord message;     // the message that it waits for, or Call::None
  uint32_t can_wait = 1;  // see PeerTable::can_wait()
  char text[3072] = {};
};

class PeerTable {
 public:
  // `tell_all` sends news to all other ranks, soon and without waiting.
  using TellAll = std::function<void(const NewsMessage&)>;
  PeerTable(const EngineOptions& options, TellAll tell_all);

  void set_timeout(std::chrono::milliseconds timeout) { timeout_ms_ = timeout.count(); }

  // What is heard of a rank, and that its connection has ended. Called by any thread.
  void start_listening();
  void heard(int rank, const NewsMessage& news);
  void lost(int rank, const std::string& why);
  bool has_ended(int rank);  // it has left, or its connection has

  // How often the others are to hear of this rank.
  std::chrono::milliseconds between_news() const;

  // The collective that this rank is in, for the others.
  void begin(const CallRecord& call);
  void end();
  // The message that it waits for; Call::None ends that.
  void wait_for(const CallRecord& message);
  void note_thread(int32_t thread);
  void begin_send();
  void end_send();
  NewsMessage news(News kind, const std::string& text = {});

  // Throws the error that has broken the group, if there is one.
  void check_usable();
  // Breaks the group, here and at the other ranks, unless it is broken.
  void put_error(const std::string& text);
  [[noreturn]] void fail(const std::string& text);

  // How long somebody has waited.
  struct Patience {
    Patience();
    int64_t since;
    bool told = false;
    bool has_left = false;  // the awaited rank had left when one looked last
    uint64_t circle = 0;    // what a circle looked like, and since when
    int64_t circle_since = 0;
  };
  // Called several times a second by whoever waits for rank `awaited` (-1: any): throws when the
  // rank cannot come any more, the timeout has passed, or the user interrupts.
  void look_around(const CallRecord& call, int awaited, Patience& patience);
  void check_peers(const CallRecord& call, int awaited, Patience& patience);
  // An operation on the connection to `rank` has failed: gives the news of the reason time to come,
  // and throws.
  [[noreturn]] void fail_connection(const CallRecord& call, int rank, const std::string& why);
  std::string table();

 private:
  struct Peer {
    int64_t heard_ms = 0, ended_ms = 0;
    bool left = false, ended = false;
    std::string error;  // the traceback that it ended with, or why the connection ended
    CallRecord call, message;
    bool can_wait = true;
  };
  // Whether this rank does nothing else while a call waits: all its calls come from one thread, and
  // no message of it is under way.
  bool can_wait() const { return one_thread_ && sends_ == 0; }
  // What a rank does that waits for this one while this one waits for it; null if it does not.
  const CallRecord* waits_for_us(const Peer& peer, const CallRecord& mine) const;
  std::string circle_with(int rank, const CallRecord& mine, Patience& patience);
  std::string why_lost(int rank, int awaited, Patience& patience);
  std::string line(int rank) const;

  const EngineOptions options_;
  const TellAll tell_all_;
  std::atomic<int64_t> timeout_ms_;
  std::mutex mutex_;
  std::vector<Peer> peers_;  // by rank
  CallRecord now_, message_;
  int32_t thread_ = 0;  // that makes all calls, 0 before the first
  bool one_thread_ = true;
  int sends_ = 0;
  std::string error_;
};

}  // namespace facula::distributed
