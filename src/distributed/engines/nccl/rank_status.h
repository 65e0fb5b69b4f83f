// What ranks tell each other of their calls, several times a second, while devices do the calls.
#pragma once
#include <span>
#include <string>

#include "distributed/engine.h"

namespace facula::distributed {

struct RankStatus {
  static constexpr int most = 6;

  uint64_t given = 0, done = 0;  // requests: both differ as soon as something has happened
  int32_t together = 0;          // calls in the oldest request that is not done
  int32_t leaves = 0;            // 1 if the rank gives nothing any more
  CallRecord waiting;            // the first of them; Call::None if there is none
  CallRecord last[most];         // the last collectives, by number

  uint64_t last_number() const;
};

// The error if two ranks differ in a collective; empty if none do.
std::string difference(std::span<const RankStatus> ranks, const std::string& group);
// A rank that waits for `rank` while that one waits for it; -1 if there is none.
int opposite(std::span<const RankStatus> ranks, int rank);
// What each rank waits for, a line for each.
std::string table_of(std::span<const RankStatus> ranks);

}  // namespace facula::distributed
