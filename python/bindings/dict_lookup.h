// Names in dicts that seldom change: modules', classes' instances'.
#pragma once
#include "python.h"

namespace facula::python {

// A borrowed item of a dict, or null where there is none; raises where a key's comparison does.
// What was found or missed last is known as long as the dict stays as it was. Under the GIL.
PyObject* find_name(PyObject* dict, PyObject* name);

}  // namespace facula::python
