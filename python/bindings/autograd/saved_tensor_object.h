// Saved tensors and their hooks, as Python sees them.
#pragma once
#include "autograd/node.h"
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

// The object of a node's `_raw_saved_...` attribute.
Object saved_field_object(const Ref<Node>& node, const OpNode::Field& field);
// The object for a tensor that was saved by a Function.
Object saved_tensor_object(const Ref<Node>& owner, const SavedTensor& saved);

// Hooks that call two Python functions.
std::shared_ptr<SavedTensorHooks> python_saved_hooks(PyObject* pack, PyObject* unpack);
void add_saved_tensors(PyObject* module);

}  // namespace facula::python
