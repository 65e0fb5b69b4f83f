// Nodes whose backward is written in Python: facula.autograd.Function.
#pragma once
#include "autograd/variable.h"
#include "python.h"

namespace facula::python {

struct NodeObject {
  PyObject_HEAD Node* node;
  bool owns_node;  // false for the context of a Function, which its node owns
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject node_type;

// Lets a tensor run the hooks of a dict on its gradient.
void attach_hooks(const Tensor& t, PyObject* hooks);

void add_function_nodes(PyObject* module);

}  // namespace facula::python
