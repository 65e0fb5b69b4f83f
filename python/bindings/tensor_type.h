// The Tensor type: its objects, and how they and TensorImpl keep each other alive.
//
// A tensor's object owns a reference to its TensorImpl. When Python drops the object while C++
// still holds the tensor, and the object could be told from a new one (attributes, a subclass,
// weak references), the ownership flips: the TensorImpl owns the object until it is wrapped again.
#pragma once
#include "core/autograd_meta.h"
#include "dispatch/value.h"
#include "python.h"

namespace facula::python {

struct TensorObject {
  PyObject_HEAD TensorImpl* impl;  // owned, unless impl->owns_python_object
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* backward_hooks;  // an OrderedDict, or null
};

extern PyTypeObject tensor_base_type;  // facula._C.TensorBase
extern PyTypeObject tensor_meta_type;  // the metaclass
extern PyTypeObject* tensor_type;      // facula.Tensor, a class made by the metaclass

inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type; }
inline bool is_tensor(PyObject* o) {
  return is_exact_tensor(o) || PyObject_TypeCheck(o, &tensor_base_type);
}
inline TensorImpl* impl_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->impl; }
// The handle that a Tensor object holds, without counting. Raises where an object has no tensor.
const Tensor& tensor_of(PyObject* o);

// The object of a tensor: the one that it has, else a new one. An undefined tensor gives None.
PyObject* wrap(Tensor t);
inline Object wrapped(Tensor t) { return Object::take(wrap(std::move(t))); }
// A new object of a subclass; the tensor must have no object yet.
Object wrap_as(PyTypeObject* type, Tensor t);

void add_tensor_type(PyObject* module);

}  // namespace facula::python
