// The batching rule of last resort: one call for each sample.
#pragma once
#include "dispatch/batch.h"

namespace facula {

// Runs on the level below and states the results. With `same_numbers` every sample sees the random
// generator in the same state.
void run_loop(Batch& b, const OpCall& c, bool same_numbers);

}  // namespace facula
