#include "bindings/tensor/keep.h"

#include <structmember.h>

#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

// --- C++ releases a reference

void destroy_held(const ObjectCounted& c, bool is_storage) {
  auto& counted = const_cast<ObjectCounted&>(c);
  if (is_storage)
    destroy(static_cast<Storage*>(&counted));
  else
    destroy(static_cast<TensorImpl*>(&counted));
}

// Called under the GIL; true if the caller must destroy.
bool release_now(const ObjectCounted& c) {
  auto* o = static_cast<PyObject*>(c.python_object.load(std::memory_order_relaxed));
  switch (c.release_shared(scheme::watch_on)) {
    case ObjectCounted::Left::Others:
      return false;
    case ObjectCounted::Left::Nobody:
      return true;
    case ObjectCounted::Left::Object:
      break;
  }
  if (Py_REFCNT(o) > 1) {
    Py_DECREF(o);
    return false;
  }
  // Saves the current exception, which finalizers must not see.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_DECREF(o);
  PyErr_Restore(type, value, trace);
  return false;
}

template <bool IsStorage>
void release_put_off(const ObjectCounted& c) {
  if (release_now(c)) destroy_held(c, IsStorage);
}

// Defers the release if that does not hold back much memory. Needs no GIL: C++ owns a reference to
// the object, and reading an outdated count is harmless.
bool put_off(const ObjectCounted& c) {
  auto* o = static_cast<PyObject*>(c.python_object.load(std::memory_order_relaxed));
  if (!o) return false;
  const bool storage = is_storage(o);
  const bool python_has_it = __atomic_load_n(&o->ob_refcnt, __ATOMIC_RELAXED) > 1;
  size_t bytes = sizeof(TensorImpl);
  if (!python_has_it && storage) bytes += static_cast<const Storage&>(c).nbytes();
  if (!python_has_it && !storage)
    if (const Ref<Storage>& s = static_cast<const TensorImpl&>(c).storage) bytes += s->nbytes();
  return release_later(c, bytes, storage ? release_put_off<true> : release_put_off<false>);
}

bool unshare(const ObjectCounted& c) {
  if (holds_gil()) return release_now(c);
  // During shutdown the tensor is leaked, since its Python object may still be in use.
  if (!may_take_gil() || put_off(c)) return false;
  HoldGil gil;
  return release_now(c);
}

// --- the end of an object

// The class whose tp_dealloc is running: the object's own, or its first base with ours.
PyTypeObject* dealloc_class(PyObject* o, const KeptKind& kind) {
  PyTypeObject* t = Py_TYPE(o);
  while (t != kind.base && t->tp_dealloc != kind.dealloc) t = t->tp_base;
  return t;
}

template <class F>
int for_each_slot(PyObject* o, const KeptKind& kind, F&& f) {
  for (PyTypeObject* t = Py_TYPE(o); t && t != kind.base; t = t->tp_base) {
    if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
    auto* m = reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(t) + Py_TYPE(t)->tp_basicsize);
    for (Py_ssize_t i = 0; i < Py_SIZE(t); ++i, ++m) {
      if (m->type != T_OBJECT_EX || (m->flags & READONLY)) continue;
      if (const int stop = f(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + m->offset)))
        return stop;
    }
  }
  return 0;
}

void clear_slots(PyObject* o, const KeptKind& kind) {
  for_each_slot(o, kind, [](PyObject*& slot) {
    Py_CLEAR(slot);
    return 0;
  });
}

// Runs `__del__`; true if the object stays alive after it.
bool finalizers_keep(PyObject* o) {
  if (!Py_TYPE(o)->tp_finalize) return false;
  PyObject_GC_Track(o);
  if (PyObject_CallFinalizerFromDealloc(o) < 0 || scheme::keep(o)) return true;
  PyObject_GC_UnTrack(o);
  return false;
}

void finish(PyObject* o, const KeptKind& kind) {
  PyTypeObject* type = Py_TYPE(o);
  PyTypeObject* dealloc_of = dealloc_class(o, kind);
  const bool ours = dealloc_of == type;  // else CPython's subtype_dealloc called this
  if (ours && finalizers_keep(o)) return;
  if (kept(o)->weakrefs) PyObject_ClearWeakRefs(o);
  if (ours) clear_slots(o, kind);
  kind.drop_fields(o);
  Py_CLEAR(kept(o)->dict);
  kind.let_go(o);
  kind.free(o);
  if (dealloc_of->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);
}

}  // namespace

const PythonHooks keep_hooks{scheme::shared, unshare};

void install(PyTypeObject* type, const KeptKind& kind) {
  type->tp_dealloc = kind.dealloc;
  type->tp_traverse = kind.base->tp_traverse;
  type->tp_clear = kind.base->tp_clear;
}

void end_object(PyObject* o, const KeptKind& kind) {
  if (Py_TYPE(o)->tp_dealloc == kind.dealloc && scheme::keep(o)) return;
  PyObject_GC_UnTrack(o);
  // Avoids deep recursion when a long chain of objects is freed.
  Py_TRASHCAN_BEGIN(o, kind.dealloc) finish(o, kind);
  Py_TRASHCAN_END
}

int traverse_object(PyObject* o, const KeptKind& kind, visitproc visit, void* arg) {
  if (kept(o)->held && !scheme::visible(*kept(o)->held)) return 0;
  PyTypeObject* type = Py_TYPE(o);
  // CPython's subtype_traverse visits __slots__, and the class unless the base's traverse does.
  if (type->tp_traverse == kind.base->tp_traverse) {
    const int stop = for_each_slot(o, kind, [&](PyObject* slot) {
      Py_VISIT(slot);
      return 0;
    });
    if (stop) return stop;
  }
  if (dealloc_class(o, kind)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(type);
  Py_VISIT(kept(o)->dict);
  return kind.traverse(o, visit, arg);
}

void clear_object(PyObject* o, const KeptKind& kind) {
  if (kept(o)->held && !scheme::visible(*kept(o)->held)) return;
  if (Py_TYPE(o)->tp_clear == kind.base->tp_clear) clear_slots(o, kind);
  kind.clear(o);
  Py_CLEAR(kept(o)->dict);
}

}  // namespace facula::python
