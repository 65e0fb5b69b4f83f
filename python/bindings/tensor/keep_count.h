// Keeping objects by the count, as PyTorch does from 2.15 on.
//
// The count of a tensor that has an object is always watched. When C++ gets its first reference
// beside the object's, it takes a reference to the object, too, and drops that with its last. So
// the object never dies while C++ has the tensor: nothing has to be brought back to life, and the
// collector sees who holds what.
#pragma once

namespace facula::python::scheme {

inline constexpr const char* name = "count";
inline constexpr bool owns_dealloc = false;  // of subclasses: CPython's own will do
inline constexpr bool watch_on = true;       // when C++ lets go of the object

// The object of something that has one, as a new reference; null where there is none yet.
inline PyObject* object_of(const ObjectCounted& held) {
  auto* o = static_cast<PyObject*>(held.python_object.load(std::memory_order_relaxed));
  return Py_XNewRef(o);
}

// Makes `o` the object; it takes over one reference.
inline void adopt(PyObject* o, ObjectCounted& held) {
  kept(o)->held = &held;
  held.python_object.store(o, std::memory_order_relaxed);
  if (held.watch() > 1) Py_INCREF(o);
}

// At reference count 0 C++ has none either.
inline bool keep(PyObject*) { return false; }

// Whether the collector may look into the object.
inline bool visible(const ObjectCounted&) { return true; }

// C++ got its first reference. Whoever it copied that from keeps the object alive until here.
inline void shared(const ObjectCounted& held) {
  auto* o = static_cast<PyObject*>(held.python_object.load(std::memory_order_relaxed));
  if (holds_gil()) {
    Py_INCREF(o);
  } else if (may_take_gil()) {
    HoldGil gil;
    Py_INCREF(o);
  }
}

}  // namespace facula::python::scheme
