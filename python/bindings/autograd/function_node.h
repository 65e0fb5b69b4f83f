// Nodes whose backward is written in Python: facula.autograd.Function.
#pragma once
#include "bindings/autograd/node_object.h"

namespace facula::python {

// Lets a tensor run the hooks of a dict on its gradient.
void attach_hooks(const Tensor& t, PyObject* hooks);

void add_function_nodes(PyObject* module);

}  // namespace facula::python
