// Saved tensors and their hooks, as Python sees them.
#pragma once
#include "autograd/node.h"
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

// `_raw_saved_self`: a field of an operator's node.
Object saved_field_object(const Ref<Node>& node, const OpNode::Field& field);
// The tensors that the context of a Function keeps.
Object saved_tensor_object(const Ref<Node>& owner, const SavedTensor& saved);

// Pack and unpack functions in Python.
std::shared_ptr<SavedTensorHooks> python_saved_hooks(PyObject* pack, PyObject* unpack);
void add_saved_tensors(PyObject* module);

}  // namespace facula::python
