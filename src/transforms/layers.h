// The layers of a call between autocast and the backend, as handlers in layer_handlers.
//
// Top to bottom: autocast (autocast.cpp), function transforms (interpreters.cpp, vmap.cpp), a
// tracing mode above autograd (modes.cpp), autograd, conjugate and negative bits (conjugate.cpp),
// the end of a grad level (interpreters.cpp), dispatch modes (modes.cpp), tensor subclasses.
#pragma once
#include <atomic>

#include "dispatch/call.h"

namespace facula {

void autocast_layer(OpCall& c);
void transforms_layer(OpCall& c);
void pre_autograd_layer(OpCall& c);
void conjugate_layer(OpCall& c);  // conjugate and negative bits together
void level_exit_layer(OpCall& c);
void modes_layer(OpCall& c);
void subclass_layer(OpCall& c);

// Handles calls on tensors whose Python class has __torch_dispatch__; the binding sets it.
extern std::atomic<LayerHandler> subclass_handler;

// A separate stack of modes that handle calls above autograd (export, jit.trace).
void push_pre_autograd_mode(DispatchMode* m);
DispatchMode* pop_pre_autograd_mode();

}  // namespace facula
