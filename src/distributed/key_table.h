// What a store knows: keys with values, and queues. Not safe for several threads.
#pragma once
#include <deque>
#include <optional>
#include <unordered_map>

#include "distributed/store.h"

namespace facula::distributed {

class KeyTable {
 public:
  // The answer, or nothing if the request has to wait for a change.
  std::optional<StoreReply> answer(const StoreRequest& request);
  // Whether a request may change the table, so that requests that wait are tried again.
  static bool may_change(const StoreRequest& request);

 private:
  bool has(const std::string& key) const;
  bool has_all(const std::vector<std::string>& keys) const;
  StoreReply set(const StoreRequest& request);
  StoreReply add(const std::string& key, int64_t delta);
  StoreReply compare_set(const std::string& key, const Bytes& expected, const Bytes& value);
  std::optional<StoreReply> pop(const std::string& key, bool waits);
  StoreReply list() const;

  std::unordered_map<std::string, Bytes> values_;
  std::unordered_map<std::string, std::deque<Bytes>> queues_;
};

// The whole number that a value spells, if it spells one.
std::optional<int64_t> number_of(const Bytes& value);

}  // namespace facula::distributed
