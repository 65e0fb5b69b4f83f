// Making and ending Tensor objects; the metaclass that gives every subclass the same ending.
#include "tensor_type.h"

#include <structmember.h>

#include "overrides.h"
#include "tensor_members.h"

namespace facula::python {

PyTypeObject* tensor_type = nullptr;

namespace {

TensorObject* self_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }

// --- objects of exact Tensors that wait for reuse

constexpr int most_free = 128;
TensorObject* free_objects[most_free];
int free_count = 0;

PyObject* new_object(PyTypeObject* type) {
  if (type != tensor_type) return type->tp_alloc(type, 0);
  if (free_count == 0) {
    TensorObject* made = PyObject_GC_New(TensorObject, type);
    if (!made) return nullptr;
    made->impl = nullptr;
    made->dict = made->weakrefs = made->backward_hooks = nullptr;
    PyObject_GC_Track(made);
    return reinterpret_cast<PyObject*>(made);
  }
  PyObject* o = reinterpret_cast<PyObject*>(free_objects[--free_count]);
  PyObject_Init(o, type);
  PyObject_GC_Track(o);
  return o;
}

void free_object(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type && free_count < most_free)
    free_objects[free_count++] = self_of(o);
  else
    type->tp_free(o);
  Py_DECREF(type);
}

// --- the end of an object

bool has_identity(PyObject* o) {
  const TensorObject* t = self_of(o);
  return Py_TYPE(o) != tensor_type || (t->dict && PyDict_GET_SIZE(t->dict) > 0) || t->weakrefs ||
         t->backward_hooks;
}

// Hands the object over to its tensor when C++ goes on using that.
bool flip_to_tensor(PyObject* o) {
  TensorImpl* impl = impl_of(o);
  if (!impl || impl->use_count() <= 1 || !has_identity(o)) return false;
#ifdef Py_TRACE_REFS
  _Py_NewReference(o);
#else
  Py_SET_REFCNT(o, 1);
#endif
  impl->owns_python_object = true;
  if (impl->release()) destroy(impl);
  return true;
}

void clear_slots(PyTypeObject* type, PyObject* o) {
  for (; type != &tensor_base_type && type; type = type->tp_base) {
    const Py_ssize_t n = Py_SIZE(type);
    PyMemberDef* m = type->tp_flags & Py_TPFLAGS_HEAPTYPE
                         ? reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(type) +
                                                          Py_TYPE(type)->tp_basicsize)
                         : nullptr;
    for (Py_ssize_t i = 0; m && i < n; ++i, ++m) {
      if (m->type != T_OBJECT_EX || (m->flags & READONLY)) continue;
      PyObject** slot = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + m->offset);
      Py_CLEAR(*slot);
    }
  }
}

// Runs `__del__`; true when that brought the object back to life.
bool finalize(PyObject* o) {
  if (!Py_TYPE(o)->tp_finalize) return false;
  return PyObject_CallFinalizerFromDealloc(o) < 0;
}

void tensor_dealloc(PyObject* o) {
  if (flip_to_tensor(o)) return;
  if (finalize(o)) return;
  PyObject_GC_UnTrack(o);
  TensorObject* t = self_of(o);
  if (t->weakrefs) PyObject_ClearWeakRefs(o);
  if (Py_TYPE(o) != tensor_type) clear_slots(Py_TYPE(o), o);
  Py_CLEAR(t->backward_hooks);
  Py_CLEAR(t->dict);
  if (TensorImpl* impl = std::exchange(t->impl, nullptr)) {
    impl->python_object.store(nullptr, std::memory_order_relaxed);
    if (impl->release()) destroy(impl);
  }
  free_object(o);
}

// The tensor that owned this object is gone.
void release_object(void* p) {
  if (!Py_IsInitialized()) return;
  HoldGil gil;
  PyObject* o = static_cast<PyObject*>(p);
  self_of(o)->impl = nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_DECREF(o);
  PyErr_Restore(type, value, trace);
}
const PythonHooks hooks{release_object};

// What C++ also holds is not the collector's to take: its dict then looks used from outside.
int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  TensorObject* t = self_of(o);
  if (t->impl && t->impl->use_count() > 1) return 0;
  Py_VISIT(t->dict);
  Py_VISIT(t->backward_hooks);
  return 0;
}
int tensor_clear(PyObject* o) {
  TensorObject* t = self_of(o);
  if (t->impl && t->impl->use_count() > 1) return 0;
  Py_CLEAR(t->dict);
  Py_CLEAR(t->backward_hooks);
  return 0;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (type == &tensor_base_type) {
    PyErr_SetString(PyExc_TypeError, "Cannot create a TensorBase directly; use facula.Tensor");
    return nullptr;
  }
  return guard([&] { return legacy_tensor(type, args, kwargs).leak(); });
}

// Tensor(data) is complete after __new__; subclasses may have __init__ with arguments of their own.
int tensor_init(PyObject*, PyObject*, PyObject*) { return 0; }

// --- the metaclass

int meta_init(PyObject* type, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(type, args, kwargs) < 0) return -1;
  PyTypeObject* t = reinterpret_cast<PyTypeObject*>(type);
  t->tp_dealloc = tensor_dealloc;
  forget_override(t);
  return 0;
}

PyTypeObject make_meta() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._TensorMeta";
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_base = &PyType_Type;
  t.tp_init = meta_init;
  t.tp_doc = "The class of Tensor classes.";
  return t;
}

PyTypeObject make_base() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C.TensorBase";
  t.tp_basicsize = sizeof(TensorObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_dealloc = tensor_dealloc;
  t.tp_traverse = tensor_traverse;
  t.tp_clear = tensor_clear;
  t.tp_dictoffset = offsetof(TensorObject, dict);
  t.tp_weaklistoffset = offsetof(TensorObject, weakrefs);
  t.tp_new = tensor_new;
  t.tp_init = tensor_init;
  t.tp_hash = tensor_hash;
  t.tp_repr = tensor_repr;
  t.tp_richcompare = tensor_compare;
  t.tp_iter = tensor_iter;
  t.tp_as_number = &tensor_number;
  t.tp_as_mapping = &tensor_mapping;
  t.tp_as_sequence = &tensor_sequence;
  t.tp_methods = tensor_methods;
  t.tp_getset = tensor_properties;
  t.tp_doc = "A multi-dimensional array of one dtype on one device.";
  return t;
}

PyObject* adopt(PyObject* o, Tensor t) {
  TensorImpl* impl = t.leak();
  self_of(o)->impl = impl;
  impl->python_object.store(o, std::memory_order_relaxed);
  return o;
}

}  // namespace

PyTypeObject tensor_meta_type = make_meta();
PyTypeObject tensor_base_type = make_base();

const Tensor& tensor_of(PyObject* o) {
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
  TensorObject* t = self_of(o);
  if (!t->impl) [[unlikely]]
    throw Error(ErrorKind::Runtime, "this ", type_name(o),
                " holds no tensor: its class's __new__ did not call Tensor's");
  return reinterpret_cast<const Tensor&>(t->impl);
}

PyObject* wrap(Tensor t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (void* there = t->python_object.load(std::memory_order_relaxed)) {
    PyObject* o = static_cast<PyObject*>(there);
    if (!t->owns_python_object) return Py_NewRef(o);
    // Flips back: the object takes our reference, the caller the one that the tensor held.
    TensorImpl* impl = t.leak();
    impl->owns_python_object = false;
    return o;
  }
  PyObject* o = new_object(tensor_type);
  return o ? adopt(o, std::move(t)) : nullptr;
}

Object wrap_as(PyTypeObject* type, Tensor t) {
  check(!t->python_object.load(), "expected a tensor that has no Python object yet");
  Object o = Object::take(new_object(type));
  t->object_has_class = type != tensor_type;
  mark_subclass(type, t);
  adopt(o.get(), std::move(t));
  return o;
}

void add_tensor_type(PyObject* module) {
  checked(PyType_Ready(&tensor_meta_type));
  Py_SET_TYPE(&tensor_base_type, &tensor_meta_type);
  add_type(module, tensor_base_type, "TensorBase");
  checked(PyObject_SetAttrString(module, "_TensorMeta",
                                 reinterpret_cast<PyObject*>(&tensor_meta_type)));
  const Object made =
      Object::take(PyObject_CallFunction(reinterpret_cast<PyObject*>(&tensor_meta_type), "s(O){ss}",
                                         "Tensor", &tensor_base_type, "__module__", "facula"));
  tensor_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(made.get()));
  checked(PyObject_SetAttrString(module, "Tensor", made.get()));
  python_hooks.store(&hooks);
}

}  // namespace facula::python
