// The order in which put-off calls run: theirs, but that a pointwise call joins an earlier group of
// its shape if nothing in between stands in its way. An optimizer's step over many parameters,
// which is written operation by operation, becomes one pass over each of them.
#pragma once
#include <deque>
#include <unordered_map>

#include "graph/rows.h"

namespace facula {

class Schedule {
 public:
  struct Counts {
    uint64_t fused = 0, groups = 0;
  };
  // Calls in the order in which they were made; each must stay where it is until run().
  void add(PendingCall& p);
  // Runs all, and releases what each call holds once it has run. Those of `changed`, storages that
  // pending calls write to, are settled and released after the last step that uses them.
  Counts run(std::vector<Ref<Storage>>& changed);

 private:
  // A call by itself, or a group.
  struct Step {
    PendingCall* call = nullptr;
    RowGroup group;
  };
  // The last steps that write to a storage and read it.
  struct Uses {
    int write = -1, read = -1;
  };
  static constexpr int most_looked_at = 64;

  class LastUses;
  Counts run_noting(LastUses& uses);
  int last_in_the_way(const PendingCall& p) const;
  int place(PendingCall& p, int first);
  void note(const PendingCall& p, int step);

  std::deque<Step> steps_;
  std::unordered_map<const Storage*, Uses> uses_;
};

}  // namespace facula
