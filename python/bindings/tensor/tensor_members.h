// The parts of the Tensor type, each implemented in a file of its own.
#pragma once
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

extern PyNumberMethods tensor_number;  // number_protocol.cpp
PyObject* tensor_compare(PyObject* a, PyObject* b, int op);
extern PyMappingMethods tensor_mapping;  // indexing.cpp
extern PySequenceMethods tensor_sequence;
PyObject* tensor_iter(PyObject* o);
extern PyMethodDef tensor_methods[];     // tensor_methods.cpp
extern PyGetSetDef tensor_properties[];  // tensor_properties.cpp
// Replaces the property descriptors of a class by ones that are faster for plain tensors.
void speed_up_properties(PyTypeObject* type);
PyObject* tensor_repr(PyObject* o);
Py_hash_t tensor_hash(PyObject* o);

// Tensor(...), the legacy constructor, which takes sizes, data or another tensor.
Object legacy_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs);

// facula.tensor, as_tensor and the like (new_tensor.cpp).
struct NewTensorOptions {
  DType dtype = DType::Undefined;  // Undefined: inferred from the data
  Device device;
  bool has_device = false;
  bool requires_grad = false;
  bool pin = false;  // whether to allocate page-locked memory
};
// A tensor with a copy of `data`: a number, nested sequences, an array, a tensor.
Tensor tensor_from(PyObject* data, const NewTensorOptions& options);
// The index tensor for a list or array used in indexing.
Tensor index_tensor(PyObject* data);
void add_new_tensor(PyObject* module);

// layouts.cpp: tensors of registered kinds.
void add_layouts(PyObject* module);

// numpy_bridge.cpp, dlpack.cpp
bool is_array(PyObject* o);
// A tensor over the array's memory.
Tensor tensor_over_array(PyObject* array, bool warn_read_only);
Object array_over_tensor(PyObject* tensor_object);
void add_numpy(PyObject* module);
void add_dlpack(PyObject* module);
Object tensor_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);
Object tensor_dlpack_device(PyObject* self);

// Nested lists of Python numbers.
Object to_list(const Tensor& t);

void add_grad_switches(PyObject* module);
void add_module_calls(PyObject* module);
void add_state(PyObject* module);  // grad mode, defaults, threads, autocast
void add_autograd(PyObject* module);
void add_op_overloads(PyObject* module);
void add_library(PyObject* module);
void add_modes(PyObject* module);
void add_operator_table(PyObject* module);  // _operator_table()
void add_memory(PyObject* module);          // statistics and allocation sites
void add_debug(PyObject* module);           // switches of the environment, the debug level, layers
void add_lazy_module(PyObject* module);     // modules with __getattr__
Object new_lazy_module(const char* name);
void add_overridable(PyObject* module);  // Python functions with __torch_function__ support

}  // namespace facula::python
