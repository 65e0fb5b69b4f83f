// Keeping objects by a flag, as PyTorch did from 2021 on.
//
// Python owns the object and the object its tensor. When Python's last reference goes while C++
// has some, the object's dealloc brings it back to life and hands it to C++: the flag, which is the
// mark in the tensor's count, is set. Wrapping the tensor again clears it and hands the object
// back. The metaclass puts our dealloc on every subclass, so that this is decided before any
// finalizer.
#pragma once

namespace facula::python::scheme {

inline constexpr const char* name = "flag";
inline constexpr bool owns_dealloc = true;  // of subclasses
inline constexpr bool watch_on = false;     // when C++ lets go of the object

// The object of something that has one, as a new reference; null where there is none yet.
inline PyObject* object_of(const ObjectCounted& held) {
  auto* o = static_cast<PyObject*>(held.python_object.load(std::memory_order_relaxed));
  if (!o) return nullptr;
  if (held.is_watched() && held.unwatch()) return o;  // C++'s reference becomes the caller's
  return Py_NewRef(o);
}

// Makes `o` the object; it takes over one reference.
inline void adopt(PyObject* o, ObjectCounted& held) {
  kept(o)->held = &held;
  held.python_object.store(o, std::memory_order_relaxed);
}

// At reference count 0: whether C++ takes the object over.
inline bool keep(PyObject* o) {
  ObjectCounted* held = kept(o)->held;
  if (!held || !held->watch_if_shared()) return false;
  _Py_NewReference(o);
  return true;
}

// Whether the collector may look into the object. What C++ holds without owning the object it must
// not see: it would take the attributes of something that may come back.
inline bool visible(const ObjectCounted& held) {
  return held.is_watched() || held.use_count() == 1;
}

// A count that is watched is never 1, so nothing is ever asked here.
inline void shared(const ObjectCounted&) {}

}  // namespace facula::python::scheme
