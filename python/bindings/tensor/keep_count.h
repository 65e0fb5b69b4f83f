// The scheme of reference counts, as in PyTorch from 2.15 on.
//
// The count of a tensor with a Python object is always watched. While C++ holds any reference
// besides the object's own, it also holds one reference to the object. So the object cannot die
// while C++ uses the tensor, needs no resurrection, and the collector sees the true counts.
#pragma once

namespace facula::python::scheme {

inline constexpr const char* name = "count";
inline constexpr bool owns_dealloc = false;  // subclasses use CPython's tp_dealloc
inline constexpr bool watch_on = true;       // keep watching when C++ releases the object

// A new reference to the object of a tensor or storage; null if it has none yet.
inline PyObject* object_of(const ObjectCounted& held) {
  auto* o = static_cast<PyObject*>(held.python_object.load(std::memory_order_relaxed));
  return Py_XNewRef(o);
}

// Makes `o` the object; `o` takes over one reference to `held`.
inline void adopt(PyObject* o, ObjectCounted& held) {
  kept(o)->held = &held;
  held.python_object.store(o, std::memory_order_relaxed);
  if (held.watch() > 1) Py_INCREF(o);
}

// At reference count 0, C++ holds no reference either.
inline bool keep(PyObject*) { return false; }

// Whether the cycle collector may traverse the object.
inline bool visible(const ObjectCounted&) { return true; }

// Called when C++ got its first reference besides the object's own.
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
