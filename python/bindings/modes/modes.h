// Calls that Python handles.
#pragma once
#include "bindings/module/python.h"
#include "dispatch/call.h"

namespace facula::python {

// The handler of Layer::Subclass.
void handle_subclass(OpCall& c);
// A call as Python sees it: positional arguments, and keywords that differ from their defaults.
struct PythonArguments {
  Object args, kwargs;
};
PythonArguments arguments_of(const OpCall& c);

// A KernelFn whose context is a Python callable.
void call_python_kernel(void* context, OpCall& c);

}  // namespace facula::python
