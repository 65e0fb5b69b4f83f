// What the recorder has run: calls by themselves and groups, with the memory they moved and their
// time. For people who look at a compiled function (`_dynamo.explain`, `compiler.visualize`).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/rows.h"

namespace facula {

// A call that ran by itself, or a group that ran in one pass.
struct Unit {
  std::vector<std::string> calls;      // names of operators
  std::vector<int64_t> sizes;          // of the first call's result
  uint64_t bytes_read = 0;             // from tensors that the unit has not made
  uint64_t bytes_written = 0;          // to tensors that outlive it
  uint64_t bytes_alone = 0;            // read and written by its calls, run one by one
  int64_t start = 0, nanoseconds = 0;  // of the steady clock
};

// Units of this thread are noted from note_units(true) on; take_units() gives those so far.
void note_units(bool on);
bool notes_units();
std::vector<Unit> take_units();

// What there is to say before a call, or a group, runs.
Unit unit_of(const PendingCall& p);
Unit unit_of(RowGroup& group);
// Notes a unit that began at `start` and has run. Calls of a group that did not run in one pass are
// units by themselves, of which the first has the time of all.
void note_unit(Unit unit, int64_t start);
int64_t steady_now();

}  // namespace facula
