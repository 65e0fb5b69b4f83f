// How a tensor or storage and its Python object keep each other alive.
//
// The Python object lives as long as the tensor: if Python drops it while C++ still holds the
// tensor, it is kept, and Python gets the same object again later. There are two schemes for this,
// keep_flag.h and keep_count.h, of which the CMake option FACULA_PYOBJECT chooses one. This file
// and keep.cpp have what they share.
#pragma once
#include "bindings/module/python.h"
#include "core/tensor.h"

namespace facula::python {

// The first fields of the object of a tensor or a storage.
struct KeptObject {
  PyObject_HEAD union {  // owned; null while the object is being made
    ObjectCounted* held;
    TensorImpl* impl;
    Storage* storage;
  };
  PyObject* dict;
  PyObject* weakrefs;
};
inline KeptObject* kept(PyObject* o) { return reinterpret_cast<KeptObject*>(o); }

}  // namespace facula::python

#ifdef FACULA_PYOBJECT_FLAG
#include "bindings/tensor/keep_flag.h"
#else
#include "bindings/tensor/keep_count.h"
#endif

namespace facula::python {

// The functions that differ between tensors and storages.
struct KeptKind {
  PyTypeObject* base;
  destructor dealloc;
  // Releases the object's reference to its tensor or storage.
  void (*let_go)(PyObject* o);
  // Traverse and clear for the cycle collector, besides the dict.
  int (*traverse)(PyObject* o, visitproc visit, void* arg);
  void (*clear)(PyObject* o);
  void (*drop_fields)(PyObject* o);  // releases fields other than the dict
  void (*free)(PyObject* o);         // frees the memory of the object
};

// Called when the reference count of an object is 0. The object stays if the scheme keeps it or a
// finalizer revives it; otherwise weak references, attributes and the tensor are released, in this
// order.
void end_object(PyObject* o, const KeptKind& kind);
// Traverse and clear for the cycle collector.
int traverse_object(PyObject* o, const KeptKind& kind, visitproc visit, void* arg);
void clear_object(PyObject* o, const KeptKind& kind);

// Stops watching the count and releases the object's reference; true if the caller must destroy.
inline bool release_as_object(ObjectCounted& held) {
  held.python_object.store(nullptr, std::memory_order_relaxed);
  return held.release_object();
}

// Sets a class's tp_dealloc, tp_traverse and tp_clear to ours.
void install(PyTypeObject* type, const KeptKind& kind);

// The functions that core/refcount.h calls.
extern const PythonHooks keep_hooks;

}  // namespace facula::python
