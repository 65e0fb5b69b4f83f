// Calls that are handled in Python: dispatch modes, __torch_dispatch__ and kernels of
// facula.library.
#pragma once
#include "bindings/module/python.h"
#include "dispatch/call.h"

namespace facula::python {

// The handler of Layer::Subclass.
void handle_subclass(OpCall& c);
// The arguments of a call for a Python handler: positional arguments, and those keyword arguments
// that differ from their defaults.
struct PythonArguments {
  Object args, kwargs;
};
PythonArguments arguments_of(const OpCall& c);

// A KernelFn whose context is a Python callable.
void call_python_kernel(void* context, OpCall& c);

}  // namespace facula::python
