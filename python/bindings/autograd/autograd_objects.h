// Nodes of the autograd graph as Python objects, and what tensors do with them.
#pragma once
#include "autograd/engine.h"
#include "autograd/variable.h"
#include "bindings/module/python.h"

namespace facula::python {

// The object of a node; the same one while it lives.
Object node_object(const Ref<Node>& n);
// x.data = y: the tensor takes over geometry, storage and dtype of the other.
void set_tensor_data(const Tensor& t, const Tensor& from);

// backward(self, gradient, retain_graph, create_graph, inputs)
Object tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs);
Object register_hook(PyObject* self, PyObject* hook);
Object register_post_accumulate_hook(PyObject* self, PyObject* hook);

// The dict of a leaf's post-accumulate hooks, borrowed, or null.
PyObject* post_accumulate_hooks(const Tensor& t);
void add_anomaly(PyObject* module);

}  // namespace facula::python
