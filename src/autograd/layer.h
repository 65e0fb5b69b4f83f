// The autograd layer: one piece of code that records a node for any operator.
#pragma once
#include "dispatch/call.h"

namespace facula {

void autograd_layer(OpCall& c);

}  // namespace facula
