// The parts of the Tensor type that stand in files of their own.
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
// Gives a class that is ready descriptors of the properties that find plain tensors at once.
void speed_up_properties(PyTypeObject* type);
PyObject* tensor_repr(PyObject* o);
Py_hash_t tensor_hash(PyObject* o);

// Tensor(...), the constructor of old: of sizes, of data, of another tensor.
Object legacy_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs);

// facula.tensor and its kin (new_tensor.cpp).
struct NewTensorOptions {
  DType dtype = DType::Undefined;  // inferred
  Device device;
  bool has_device = false;
  bool requires_grad = false;
  bool pin = false;  // in page-locked memory
};
// A tensor with a copy of `data`: a number, nested sequences, an array, a tensor.
Tensor tensor_from(PyObject* data, const NewTensorOptions& options);
// A list or array that stands for an index.
Tensor index_tensor(PyObject* data);
void add_new_tensor(PyObject* module);

// layouts.cpp: tensors of registered kinds.
void add_layouts(PyObject* module);

// numpy_bridge.cpp, dlpack.cpp
bool is_array(PyObject* o);
// Shares the array's memory; a conversion that NumPy's types need is a copy.
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
void add_memory(PyObject* module);          // statistics of the allocator, where blocks came from
void add_debug(PyObject* module);           // switches of the environment, the debug level, layers
void add_lazy_module(PyObject* module);     // modules with __getattr__
Object new_lazy_module(const char* name);
void add_overridable(PyObject* module);  // functions in Python that overrides see

}  // namespace facula::python
