// The scheme of an ownership flag, as in PyTorch from 2021 on.
//
// The object owns its tensor. When Python's last reference to the object goes while C++ still holds
// the tensor, tp_dealloc revives the object and ownership is reversed: the tensor owns the object,
// and the flag (the "watched" bit of the tensor's count) is set. Wrapping the tensor again clears
// the flag and returns ownership to Python. The metaclass sets our tp_dealloc on every subclass, so
// that this happens before any finalizer runs.
#pragma once

namespace facula::python::scheme {

inline constexpr const char* name = "flag";
inline constexpr bool owns_dealloc = true;  // subclasses use our tp_dealloc
inline constexpr bool watch_on = false;     // clear the flag when C++ releases the object

// A new reference to the object of a tensor or storage; null if it has none yet.
inline PyObject* object_of(const ObjectCounted& held) {
  auto* o = static_cast<PyObject*>(held.python_object.load(std::memory_order_relaxed));
  if (!o) return nullptr;
  if (held.is_watched() && held.unwatch()) return o;  // C++'s reference becomes the caller's
  return Py_NewRef(o);
}

// Makes `o` the object; `o` takes over one reference to `held`.
inline void adopt(PyObject* o, ObjectCounted& held) {
  kept(o)->held = &held;
  held.python_object.store(o, std::memory_order_relaxed);
}

// Called at reference count 0: returns whether the tensor becomes the owner of the object.
inline bool keep(PyObject* o) {
  ObjectCounted* held = kept(o)->held;
  if (!held || !held->watch_if_shared()) return false;
  _Py_NewReference(o);
  return true;
}

// Whether the cycle collector may traverse the object. While C++ holds the tensor but does not own
// the object, it may not: it could clear the attributes of an object that is wrapped again later.
inline bool visible(const ObjectCounted& held) {
  return held.is_watched() || held.use_count() == 1;
}

// Never called, since a watched count is never 1 here.
inline void shared(const ObjectCounted&) {}

}  // namespace facula::python::scheme
