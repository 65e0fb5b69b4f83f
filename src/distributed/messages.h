// Messages between two ranks on one machine: streams of bytes through the channels of an arena.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed/arena.h"

namespace facula::distributed {

// Whoever waits for a message moves the bytes of all of them. A message that nobody waits for is
// moved by a thread of its own, once pursue() was called.
class Messages {
 public:
  explicit Messages(Arena& arena);
  ~Messages();
  Messages(const Messages&) = delete;

  uint64_t begin_send(const CallRecord& record, const void* data);
  uint64_t begin_receive(const CallRecord& record, void* data);
  void pursue();
  int finish(uint64_t message);
  bool test(uint64_t message);

 private:
  struct Message {
    CallRecord record;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    int64_t moved = -1;  // bytes; -1 before the record has gone
    bool done = false;
  };
  // A message on its way in: to a receive that waits for it, or kept until one does.
  struct Incoming {
    CallRecord record;
    int64_t moved = 0;
    uint64_t receive = 0;  // the message's number, or 0
    std::vector<std::byte> kept;
  };

  static int64_t bytes_of(const CallRecord& record);
  bool move();  // returns whether bytes were moved; under the mutex
  bool write(int to);
  bool read(int from);
  bool begin_incoming(int from);
  void end_incoming(int from);
  uint64_t matching_receive(int from, const CallRecord& record) const;
  void accept(uint64_t receive, int from, const CallRecord& record);
  void take_kept(int from);
  void move_in_background();
  std::vector<int> awaited(const CallRecord& record) const;
  void forget(uint64_t message);

  Arena& arena_;
  std::mutex mutex_;
  uint64_t next_ = 1;
  std::map<uint64_t, Message> messages_;
  std::vector<std::deque<uint64_t>> sends_;          // by receiver
  std::deque<uint64_t> receives_;                    // in the order of their calls
  std::vector<std::unique_ptr<Incoming>> incoming_;  // by sender
  std::vector<std::deque<std::unique_ptr<Incoming>>> kept_;
  std::thread background_;
  bool in_background_ = false;
  std::atomic<bool> stopping_{false};
};

}  // namespace facula::distributed
