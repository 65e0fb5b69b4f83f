// Nodes of the graph as Python objects.
#pragma once
#include "autograd/variable.h"
#include "bindings/module/python.h"

namespace facula::python {

struct NodeObject {
  PyObject_HEAD Node* node;
  bool owns_node;  // false for the context of a Function, which its node owns
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject node_type;

// The dict behind the `metadata` attribute of a node.
Object node_metadata(Node& n);
void add_nodes(PyObject* module);

}  // namespace facula::python
