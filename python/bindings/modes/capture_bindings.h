// What captured functions (_dynamo) compare at each call, for Python.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// Adds the functions to facula._C.
void add_capture_functions(PyObject* module);

}  // namespace facula::python
