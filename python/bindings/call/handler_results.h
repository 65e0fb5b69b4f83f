// What Python handlers return, on its way into C++: checked against the operator's schema here and
// nowhere else, so that no code behind a call meets a result of another kind than it was promised.
#pragma once
#include "bindings/module/python.h"
#include "dispatch/call.h"

namespace facula::python {

// Puts what a handler in Python (a dispatch mode, __torch_dispatch__, a kernel of facula.library)
// returned into the result slots of a call. RuntimeError that names the operator, the result and
// what came, where number or kind of the results are not the schema's. None may stand for a tensor
// that the operator writes, as nothing does in PyTorch.
void store_results(OpCall& c, PyObject* returned);

}  // namespace facula::python
