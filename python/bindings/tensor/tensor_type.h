// The Tensor type and the objects of tensors; keep.h tells how the two keep each other alive.
#pragma once
#include "bindings/tensor/keep.h"
#include "core/autograd_meta.h"
#include "dispatch/value.h"

namespace facula::python {

struct TensorObject {
  KeptObject kept;
  PyObject* backward_hooks;  // an OrderedDict, or null
};

extern PyTypeObject tensor_base_type;  // facula._C.TensorBase
extern PyTypeObject tensor_meta_type;  // the metaclass
extern PyTypeObject* tensor_type;      // facula.Tensor, a class made by the metaclass

inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type; }
inline bool is_tensor(PyObject* o) {
  return is_exact_tensor(o) || PyObject_TypeCheck(o, &tensor_base_type);
}
inline TensorImpl* impl_of(PyObject* o) { return kept(o)->impl; }
// The subclass that was last found to override neither functions nor dispatch, as Parameter does
// not, and its version: a class that changes gets another.
struct PlainSubclass {
  PyTypeObject* type;
  unsigned version;
};
extern PlainSubclass plain_subclass;
// Whether nothing of the object's class takes calls over; false where that is not known at once.
inline bool is_plain_tensor(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == tensor_type ||
         (t == plain_subclass.type && t->tp_version_tag == plain_subclass.version);
}
// The tensor of such an object, borrowed; null for any other.
inline TensorImpl* plain_impl(PyObject* o) { return is_plain_tensor(o) ? impl_of(o) : nullptr; }

[[noreturn]] void throw_no_tensor(PyObject* o);
// The handle that a Tensor object holds, without counting. Raises where an object has no tensor.
inline const Tensor& tensor_of(PyObject* o) {
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
  KeptObject* k = kept(o);
  if (!k->impl) [[unlikely]]
    throw_no_tensor(o);
  return reinterpret_cast<const Tensor&>(k->impl);
}

// The object of a tensor: the one that it has, else a new one. An undefined tensor gives None.
PyObject* wrap(Tensor t);
inline Object wrapped(Tensor t) { return Object::take(wrap(std::move(t))); }
// A new object of a subclass; the tensor must have no object yet.
Object wrap_as(PyTypeObject* type, Tensor t);

void add_tensor_type(PyObject* module);

}  // namespace facula::python
