// Calls that Python handles.
#pragma once
#include "dispatch/call.h"

namespace facula::python {

// The handler of Layer::Subclass.
void handle_subclass(OpCall& c);
// A KernelFn whose context is a Python callable.
void call_python_kernel(void* context, OpCall& c);

}  // namespace facula::python
