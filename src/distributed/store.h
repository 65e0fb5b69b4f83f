// Stores: keys and values by which ranks find each other. A call of a store is a request, which is
// the same whether a table in this process answers it, a server, or a file.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace facula::distributed {

using Bytes = std::string;  // any bytes
using Milliseconds = std::chrono::milliseconds;

// python/facula/distributed/_store.py has the same numbers.
enum class StoreCall : uint8_t {
  Set = 1,     // keys, values
  Get,         // keys; waits for all
  Add,         // key, number
  Check,       // keys; the number is 1 if all are there
  Wait,        // keys
  Delete,      // key; the number is 1 if it was there
  Count,       // the number of keys
  CompareSet,  // key; expected and new value
  Append,      // key, value
  List,        // all keys
  Push,        // queue, value
  Pop,         // queue; the number is 1 to wait for a value
  Length,      // queue
  WaitCount,   // key; waits until its number is at least this
};

struct StoreRequest {
  StoreCall call = StoreCall::Check;
  int64_t number = 0;
  int64_t timeout_ms = 0;
  std::vector<std::string> keys;
  std::vector<Bytes> values;
};

enum class StoreStatus : uint8_t { Done, Timeout, QueueEmpty, NoNumber, BadRequest };

struct StoreReply {
  StoreStatus status = StoreStatus::Done;
  int64_t number = 0;
  std::vector<Bytes> values;
};

class StoreError : public Error {
 public:
  enum class Cause : uint8_t { Store, Network, QueueEmpty };
  template <class... Args>
  explicit StoreError(Cause cause, const Args&... args)
      : Error(ErrorKind::Runtime, args...), cause_(cause) {}
  Cause cause() const noexcept { return cause_; }

 private:
  Cause cause_;
};

class Store {
 public:
  virtual ~Store() = default;
  // Answers a request, after waiting for what it needs. Any thread may call it, and several at
  // once. Throws a StoreError if the store cannot be reached.
  virtual StoreReply run(const StoreRequest& request) = 0;
};

}  // namespace facula::distributed
