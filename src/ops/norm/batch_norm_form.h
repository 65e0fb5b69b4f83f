// Which operators batch_norm() is made of.
#pragma once

namespace facula {

// Whether this thread's batch_norm() calls operators whose schemas tell that they write the running
// statistics, as programs need that are recorded ahead of time; native_batch_norm, which does not
// tell, is faster to call. Returns what was set before.
bool batch_norm_shows_writes(bool on);

}  // namespace facula
