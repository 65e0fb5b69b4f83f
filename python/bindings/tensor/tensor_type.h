// The Tensor type and its objects; keep.h explains how a tensor and its object keep each other
// alive.
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
// A cache of one subclass that overrides neither __torch_function__ nor __torch_dispatch__, such as
// Parameter, with its version tag, which changes when the class does.
struct PlainSubclass {
  PyTypeObject* type;
  unsigned version;
};
extern PlainSubclass plain_subclass;
// Whether the object is a Tensor whose class overrides nothing. May return false for such a tensor
// if its class is not in the cache.
inline bool is_plain_tensor(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == tensor_type ||
         (t == plain_subclass.type && t->tp_version_tag == plain_subclass.version);
}
// The tensor of such an object, borrowed; null for any other.
inline TensorImpl* plain_impl(PyObject* o) { return is_plain_tensor(o) ? impl_of(o) : nullptr; }

[[noreturn]] void throw_no_tensor(PyObject* o);
// The tensor of a Tensor object, without counting a reference. Raises if the object has none.
inline const Tensor& tensor_of(PyObject* o) {
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
  KeptObject* k = kept(o);
  if (!k->impl) [[unlikely]]
    throw_no_tensor(o);
  return reinterpret_cast<const Tensor&>(k->impl);
}

// The object of a tensor, made if it has none yet; None for an undefined tensor.
PyObject* wrap(Tensor t);
inline Object wrapped(Tensor t) { return Object::take(wrap(std::move(t))); }
// A new object of a subclass; the tensor must have no object yet.
Object wrap_as(PyTypeObject* type, Tensor t);

void add_tensor_type(PyObject* module);

}  // namespace facula::python
