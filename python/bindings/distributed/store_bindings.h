// Stores for Python.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// Adds the module facula._C._store.
void add_stores(PyObject* module);

}  // namespace facula::python
