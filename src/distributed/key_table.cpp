#include "distributed/key_table.h"

#include <algorithm>
#include <charconv>

namespace facula::distributed {

std::optional<int64_t> number_of(const Bytes& value) {
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

namespace {

StoreReply number_reply(int64_t number) { return {StoreStatus::Done, number, {}}; }
StoreReply status_reply(StoreStatus status) { return {status, 0, {}}; }

// Requests come from other processes: whether one has what its call needs.
bool is_complete(const StoreRequest& r) {
  const size_t keys = r.keys.size(), values = r.values.size();
  switch (r.call) {
    case StoreCall::Set:
      return keys == values;
    case StoreCall::CompareSet:
      return keys == 1 && values == 2;
    case StoreCall::Append:
    case StoreCall::Push:
      return keys == 1 && values == 1;
    case StoreCall::Add:
    case StoreCall::Delete:
    case StoreCall::Pop:
    case StoreCall::Length:
    case StoreCall::WaitCount:
      return keys == 1;
    default:
      return true;
  }
}

}  // namespace

bool KeyTable::may_change(const StoreRequest& r) {
  switch (r.call) {
    case StoreCall::Set:
    case StoreCall::Add:
    case StoreCall::Delete:
    case StoreCall::CompareSet:
    case StoreCall::Append:
    case StoreCall::Push:
    case StoreCall::Pop:
      return true;
    default:
      return false;
  }
}

bool KeyTable::has(const std::string& key) const {
  return values_.contains(key) || queues_.contains(key);
}

bool KeyTable::has_all(const std::vector<std::string>& keys) const {
  return std::ranges::all_of(keys, [&](const auto& k) { return has(k); });
}

StoreReply KeyTable::set(const StoreRequest& r) {
  for (size_t i = 0; i < r.keys.size(); ++i) values_[r.keys[i]] = r.values[i];
  return {};
}

StoreReply KeyTable::add(const std::string& key, int64_t delta) {
  const auto found = values_.find(key);
  int64_t number = 0;
  if (found != values_.end()) {
    const auto before = number_of(found->second);
    if (!before) return status_reply(StoreStatus::NoNumber);
    number = *before;
  }
  if (__builtin_add_overflow(number, delta, &number)) return status_reply(StoreStatus::NoNumber);
  values_[key] = std::to_string(number);
  return number_reply(number);
}

StoreReply KeyTable::compare_set(const std::string& key, const Bytes& expected,
                                 const Bytes& value) {
  const auto found = values_.find(key);
  StoreReply reply;
  if (found == values_.end()) {
    if (expected.empty()) values_[key] = value;
    reply.values.push_back(expected.empty() ? value : expected);
    return reply;
  }
  if (found->second == expected) found->second = value;
  reply.values.push_back(found->second);
  return reply;
}

std::optional<StoreReply> KeyTable::pop(const std::string& key, bool waits) {
  const auto found = queues_.find(key);
  if (found == queues_.end()) {
    if (waits) return std::nullopt;
    return status_reply(StoreStatus::QueueEmpty);
  }
  StoreReply reply;
  reply.values.push_back(std::move(found->second.front()));
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  return reply;
}

StoreReply KeyTable::list() const {
  StoreReply reply;
  for (const auto& [key, value] : values_) reply.values.push_back(key);
  for (const auto& [key, queue] : queues_) reply.values.push_back(key);
  return reply;
}

std::optional<StoreReply> KeyTable::answer(const StoreRequest& r) {
  if (!is_complete(r)) return status_reply(StoreStatus::BadRequest);
  switch (r.call) {
    case StoreCall::Set:
      return set(r);
    case StoreCall::Get: {
      StoreReply reply;
      for (const auto& key : r.keys) {
        const auto found = values_.find(key);
        if (found == values_.end()) return std::nullopt;
        reply.values.push_back(found->second);
      }
      return reply;
    }
    case StoreCall::Add:
      return add(r.keys[0], r.number);
    case StoreCall::Check:
      return number_reply(has_all(r.keys));
    case StoreCall::Wait:
      if (!has_all(r.keys)) return std::nullopt;
      return StoreReply();
    case StoreCall::Delete:
      return number_reply(values_.erase(r.keys[0]) + queues_.erase(r.keys[0]) > 0);
    case StoreCall::Count:
      return number_reply(static_cast<int64_t>(values_.size() + queues_.size()));
    case StoreCall::CompareSet:
      return compare_set(r.keys[0], r.values[0], r.values[1]);
    case StoreCall::Append:
      values_[r.keys[0]] += r.values[0];
      return StoreReply();
    case StoreCall::List:
      return list();
    case StoreCall::Push:
      queues_[r.keys[0]].push_back(r.values[0]);
      return StoreReply();
    case StoreCall::Pop:
      return pop(r.keys[0], r.number != 0);
    case StoreCall::Length: {
      const auto found = queues_.find(r.keys[0]);
      return number_reply(found == queues_.end() ? 0 : static_cast<int64_t>(found->second.size()));
    }
    case StoreCall::WaitCount: {
      const auto found = values_.find(r.keys[0]);
      const auto number = found == values_.end() ? std::nullopt : number_of(found->second);
      if (!number || *number < r.number) return std::nullopt;
      return StoreReply();
    }
  }
  return status_reply(StoreStatus::BadRequest);
}

}  // namespace facula::distributed
