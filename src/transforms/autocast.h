// Autocast: operators run in the precision that suits them, by the autocast class of their record.
#pragma once
#include "dispatch/call.h"

namespace facula {

// Puts a state in force on this thread and returns the one before. Casts of weights that were kept
// are let go when autocasting ends.
AutocastState set_autocast(const AutocastState& state);
void clear_autocast_cache();

}  // namespace facula
