// Checks what Python handlers return against the operator's schema. All results from Python pass
// through here, so that C++ code may rely on their types.
#pragma once
#include "bindings/module/python.h"
#include "dispatch/call.h"

namespace facula::python {

// Stores what a handler in Python (a dispatch mode, __torch_dispatch__, a kernel of facula.library)
// returned in the result slots of a call. RuntimeError that names the operator and the result if
// their number or a type is not that of the schema. For an argument that the operator writes, None
// is accepted too.
void store_results(OpCall& c, PyObject* returned);

}  // namespace facula::python
