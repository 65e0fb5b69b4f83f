// How a tensor or storage and its Python object keep each other alive.
//
// The object lives as long as what it stands for: dropped by Python while C++ goes on, it is kept,
// and comes back as it was. There are two ways to do that, one of which is built (the CMake option
// FACULA_PYOBJECT): keep_flag.h and keep_count.h. This file and keep.cpp have what they share.
#pragma once
#include "bindings/module/python.h"
#include "core/tensor.h"

namespace facula::python {

// How the object of a tensor or a storage begins.
struct KeptObject {
  PyObject_HEAD union {  // what the object owns one reference to; null before it has any
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

// What tensors and storages do differently.
struct KeptKind {
  PyTypeObject* base;
  destructor dealloc;
  // Ends the object's part in what it holds, and destroys that if nobody else does.
  void (*let_go)(PyObject* o);
  // What the collector sees and clears besides the dict.
  int (*traverse)(PyObject* o, visitproc visit, void* arg);
  void (*clear)(PyObject* o);
  void (*drop_fields)(PyObject* o);  // besides the dict, at the end
  void (*free)(PyObject* o);         // memory alone
};

// The end of an object whose reference count is 0: it stays where the scheme says so or its
// finalizers bring it back; else weak references, attributes and what it holds go, in this order.
void end_object(PyObject* o, const KeptKind& kind);
// What the collector sees and clears.
int traverse_object(PyObject* o, const KeptKind& kind, visitproc visit, void* arg);
void clear_object(PyObject* o, const KeptKind& kind);

// Ends watching and gives up the object's reference; true when the caller destroys.
inline bool release_as_object(ObjectCounted& held) {
  held.python_object.store(nullptr, std::memory_order_relaxed);
  return held.release_object();
}

// Gives a class our dealloc and our part in the collection, in place of CPython's.
void install(PyTypeObject* type, const KeptKind& kind);

// The function table for the library.
extern const PythonHooks keep_hooks;

}  // namespace facula::python
