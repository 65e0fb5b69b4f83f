// Modes that deal in plain tensors.
#pragma once
#include "dispatch/call.h"

namespace facula {

// A mode that leaves calls on tensor subclasses with a __torch_dispatch__ to them, and handles what
// they call in turn: a program is recorded, or made free of changes, from what a subclass does.
struct InnerMode : DispatchMode {};

}  // namespace facula
