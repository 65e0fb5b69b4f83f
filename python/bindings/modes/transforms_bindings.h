// Function transforms, functionalization, tracing and fake tensors for Python.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// Adds the functions to facula._C, and those of torch._C._functorch to facula._C._functorch.
void add_transform_functions(PyObject* module);

}  // namespace facula::python
