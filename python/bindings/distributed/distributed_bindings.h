// Process groups for Python.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// Adds the module facula._C._distributed.
void add_distributed(PyObject* module);

}  // namespace facula::python
