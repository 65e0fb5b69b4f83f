// The fallback for operators without a batching rule: one call for each sample.
#pragma once
#include "dispatch/batch.h"

namespace facula {

// Calls the operator on the level below for each sample and sets the results. With `same_numbers`
// every sample begins with the same state of the random generator.
void run_loop(Batch& b, const OpCall& c, bool same_numbers);

}  // namespace facula
