// Makes the autograd graph visible to Python's cycle collector.
#pragma once
#include "bindings/module/python.h"
#include "core/autograd_meta.h"

namespace facula::python {

// Visits the Python objects that only this tensor keeps alive through its .grad and its graph: the
// contexts of Functions, hooks, and objects of tensors. An object is visited only if all references
// that C++ holds to it were found on the way.
int traverse_graph(const TensorImpl& t, visitproc visit, void* arg);
// The same for a node whose only owner is its Python object.
int traverse_node(GraphNode& n, visitproc visit, void* arg);
// Clears the grad_fn and .grad of a tensor that the collector found to be garbage.
void clear_graph(TensorImpl& t);

}  // namespace facula::python
