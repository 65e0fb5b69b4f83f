// Autograd for Python: objects of nodes, Tensor.backward, hooks.
#pragma once
#include "autograd/engine.h"
#include "autograd/variable.h"
#include "bindings/module/python.h"

namespace facula::python {

// The Python object of a node; the same object as long as it is alive.
Object node_object(const Ref<Node>& n);
// x.data = y: gives the tensor the geometry, storage and dtype of the other.
void set_tensor_data(const Tensor& t, const Tensor& from);

// backward(self, gradient, retain_graph, create_graph, inputs)
Object tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs);
Object register_hook(PyObject* self, PyObject* hook);
Object register_post_accumulate_hook(PyObject* self, PyObject* hook);

// The dict of a leaf's post-accumulate hooks, borrowed, or null.
PyObject* post_accumulate_hooks(const Tensor& t);
void add_anomaly(PyObject* module);

}  // namespace facula::python
