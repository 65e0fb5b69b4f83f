// The latest in-place changes of this thread, for errors that name them.
#pragma once
#include <string>

#include "dispatch/operator.h"

namespace facula {

struct Mutation {
  const void* counter = nullptr;  // what counts the tensor's versions
  uint32_t version = 0;           // that the change led to
  const Operator* op = nullptr;   // null: no operator did it
  std::string line;               // of the source, where somebody gives lines
};

// Notes that `op` has just changed `t`. Costs a few stores; old entries are overwritten.
void note_mutation(const TensorImpl& t, const Operator* op);
// The change that made this version of the tensor; null when it is forgotten.
const Mutation* find_mutation(const TensorImpl& t, uint32_t version);

// Gives the source line of the caller's program. Null: lines are not noted.
using SourceLine = std::string (*)();
extern constinit std::atomic<SourceLine> source_line;

}  // namespace facula
