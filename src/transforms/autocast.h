// Autocast: casts the arguments of operators by the autocast class of their record.
#pragma once
#include "dispatch/call.h"

namespace facula {

// Sets this thread's autocast state and returns the old one. The cache of cast weights is cleared
// when autocast is turned off.
AutocastState set_autocast(const AutocastState& state);
void clear_autocast_cache();

}  // namespace facula
