#include "distributed/engines/nccl/rank_status.h"

#include <algorithm>
#include <map>
#include <vector>

#include "distributed/call_text.h"

namespace facula::distributed {
namespace {

bool is_message(const CallRecord& r) { return r.call == Call::Send || r.call == Call::Receive; }

bool fit(const CallRecord& a, int rank_a, const CallRecord& b, int rank_b) {
  return a.root == rank_b && b.root == rank_a && a.call != b.call && is_message(b);
}

// Whether the oldest call of rank a cannot end before rank b has done something else.
bool waits_for(std::span<const RankStatus> ranks, int a, int b) {
  const RankStatus& x = ranks[static_cast<size_t>(a)];
  const RankStatus& y = ranks[static_cast<size_t>(b)];
  if (x.waiting.call == Call::None || y.waiting.call == Call::None) return false;
  if (x.together > 1 || y.together > 1) return false;  // several at once: any may be the awaited
  if (is_message(x.waiting)) return x.waiting.root == b && !fit(x.waiting, a, y.waiting, b);
  return is_message(y.waiting) || y.waiting.sequence < x.waiting.sequence;
}

}  // namespace

uint64_t RankStatus::last_number() const {
  uint64_t most_yet = 0;
  for (const CallRecord& record : last) most_yet = std::max(most_yet, record.sequence);
  return most_yet;
}

std::string difference(std::span<const RankStatus> ranks, const std::string& group) {
  std::map<uint64_t, std::vector<const CallRecord*>> by_number;
  for (size_t r = 0; r < ranks.size(); ++r)
    for (const CallRecord& record : ranks[r].last) {
      if (record.call == Call::None) continue;
      auto& all = by_number[record.sequence];
      all.resize(ranks.size());
      all[r] = &record;
    }
  static const CallRecord none;
  for (auto& [number, records] : by_number) {
    const auto first = std::find_if(records.begin(), records.end(), [](auto* c) { return c; });
    const bool same = std::all_of(records.begin(), records.end(), [&](const CallRecord* c) {
      return c == nullptr || agree(**first, *c);
    });
    if (same) continue;
    for (const CallRecord*& c : records)
      if (c == nullptr) c = &none;
    return disagreement(records, group);
  }
  return {};
}

int opposite(std::span<const RankStatus> ranks, int rank) {
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r)
    if (r != rank && waits_for(ranks, rank, r) && waits_for(ranks, r, rank)) return r;
  return -1;
}

std::string table_of(std::span<const RankStatus> ranks) {
  std::string text;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankStatus& s = ranks[r];
    text += concat(r ? "\n" : "", "  rank ", r, ": ");
    if (s.waiting.call == Call::None)
      text += concat("waits for nothing; has ended ", s.done, " calls");
    else
      text += text_of(s.waiting);
    if (s.together > 1) text += concat(" and ", s.together - 1, " calls with it");
  }
  return text;
}

}  // namespace facula::distributed
