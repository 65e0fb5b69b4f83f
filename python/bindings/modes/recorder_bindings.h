// The recorder of compiled functions for Python.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// Adds the functions to facula._C.
void add_recorder_functions(PyObject* module);

}  // namespace facula::python
