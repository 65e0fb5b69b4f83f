// What Python's collector sees of the autograd graph.
#pragma once
#include "bindings/module/python.h"
#include "core/autograd_meta.h"

namespace facula::python {

// Visits the Python objects that live for this tensor's sake alone: contexts of Functions, hooks,
// and objects of tensors, behind its gradient and the nodes of its history. A reference counts only
// where all that C++ holds of the same thing was met on the way.
int traverse_graph(const TensorImpl& t, visitproc visit, void* arg);
// The same for a node that one Python object holds.
int traverse_node(GraphNode& n, visitproc visit, void* arg);
// Ends the history and the gradient of a tensor that is garbage.
void clear_graph(TensorImpl& t);

}  // namespace facula::python
