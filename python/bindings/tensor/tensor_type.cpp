// Allocation and deallocation of Tensor objects, and the metaclass that sets both for subclasses.
#include "bindings/tensor/tensor_type.h"

#include <structmember.h>

#include "bindings/autograd/traverse.h"
#include "bindings/modes/overrides.h"
#include "bindings/module/package.h"
#include "bindings/tensor/operator_methods.h"
#include "bindings/tensor/tensor_members.h"

namespace facula::python {

PyTypeObject* tensor_type = nullptr;

namespace {

TensorObject* tensor_object(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }

// --- a free list of Tensor objects

#ifdef __SANITIZE_ADDRESS__
constexpr int most_free = 0;  // so that the address sanitizer finds uses after free
#else
constexpr int most_free = 128;
#endif
PyObject* free_objects[most_free + 1];
int free_count = 0;

PyObject* new_object(PyTypeObject* type) {
  if (type != tensor_type) return type->tp_alloc(type, 0);
  if (free_count == 0) {
    TensorObject* made = PyObject_GC_New(TensorObject, type);
    if (!made) return nullptr;
    made->kept.held = nullptr;
    made->kept.dict = made->kept.weakrefs = made->backward_hooks = nullptr;
    PyObject_GC_Track(made);
    return reinterpret_cast<PyObject*>(made);
  }
  PyObject* o = free_objects[--free_count];
  PyObject_Init(o, type);
  PyObject_GC_Track(o);
  return o;
}

void free_object(PyObject* o) {
  if (Py_TYPE(o) == tensor_type && free_count < most_free)
    free_objects[free_count++] = o;
  else
    Py_TYPE(o)->tp_free(o);
}

// --- deallocation and garbage collection

void let_go(PyObject* o) {
  TensorImpl* impl = std::exchange(kept(o)->impl, nullptr);
  if (impl && release_as_object(*impl)) destroy(impl);
}
int traverse_hooks_and_graph(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(tensor_object(o)->backward_hooks);
  return impl_of(o) ? traverse_graph(*impl_of(o), visit, arg) : 0;
}
void clear_hooks_and_graph(PyObject* o) {
  Py_CLEAR(tensor_object(o)->backward_hooks);
  if (impl_of(o)) clear_graph(*impl_of(o));
}
void drop_hooks(PyObject* o) { Py_CLEAR(tensor_object(o)->backward_hooks); }

void tensor_dealloc(PyObject* o);
const KeptKind kind{&tensor_base_type,     tensor_dealloc, let_go,     traverse_hooks_and_graph,
                    clear_hooks_and_graph, drop_hooks,     free_object};

// Whether the object has no state besides its tensor, so that it can go to the free list.
bool is_plain(PyObject* o) {
  const TensorObject* t = tensor_object(o);
  return Py_TYPE(o) == tensor_type && !t->kept.dict && !t->kept.weakrefs && !t->backward_hooks;
}

void tensor_dealloc(PyObject* o) {
  if (!is_plain(o)) return end_object(o, kind);
  if (scheme::keep(o)) return;
  PyObject_GC_UnTrack(o);
  let_go(o);
  free_object(o);
  Py_DECREF(tensor_type);
}
int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  return traverse_object(o, kind, visit, arg);
}
int tensor_clear(PyObject* o) {
  clear_object(o, kind);
  return 0;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (type == &tensor_base_type) {
    PyErr_SetString(PyExc_TypeError, "Cannot create a TensorBase directly; use facula.Tensor");
    return nullptr;
  }
  return guard([&] { return legacy_tensor(type, args, kwargs).leak(); });
}

// Does nothing: __new__ handles all arguments, and subclasses may have an __init__ with others.
int tensor_init(PyObject*, PyObject*, PyObject*) { return 0; }

// --- the metaclass

// Uses tp_new, because a user's metaclass may omit the call of __init__ but not of __new__.
PyObject* meta_new(PyTypeObject* meta, PyObject* args, PyObject* kwargs) {
  PyObject* made = PyType_Type.tp_new(meta, args, kwargs);
  if (!made) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(made);
  if (scheme::owns_dealloc) install(type, kind);
  if (tensor_type) take_operator_slots(type);
  return made;
}

// CPython sets the slots of a class when a method of an operator is set, deleted or inherited anew.
int meta_set_attribute(PyObject* type, PyObject* name, PyObject* value) {
  if (PyType_Type.tp_setattro(type, name, value) < 0) return -1;
  const bool special = PyUnicode_GET_LENGTH(name) > 2 && PyUnicode_READ_CHAR(name, 0) == '_' &&
                       PyUnicode_READ_CHAR(name, 1) == '_';
  if (!special || type == reinterpret_cast<PyObject*>(&tensor_base_type)) return 0;
  return guard_status([&] { take_operator_slots_below(reinterpret_cast<PyTypeObject*>(type)); });
}

PyTypeObject make_meta() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._TensorMeta";
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_base = &PyType_Type;
  t.tp_new = meta_new;
  t.tp_setattro = meta_set_attribute;
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
  t.tp_dictoffset = offsetof(KeptObject, dict);
  t.tp_weaklistoffset = offsetof(KeptObject, weakrefs);
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

}  // namespace

PyTypeObject tensor_meta_type = make_meta();
PyTypeObject tensor_base_type = make_base();

// CPython calls a method descriptor faster if the object's class is the descriptor's own class, so
// the descriptors get Tensor as their class.
void add_tensor_method(PyMethodDef& method) {
  const Object o = Object::take(PyDescr_NewMethod(tensor_type, &method));
  reinterpret_cast<PyDescrObject*>(o.get())->d_qualname =
      checked(PyUnicode_FromFormat("TensorBase.%s", method.ml_name));
  checked(PyDict_SetItemString(tensor_base_type.tp_dict, method.ml_name, o.get()));
}

namespace {
void add_methods() {
  for (PyMethodDef* def = tensor_methods; def->ml_name; ++def)
    if (!(def->ml_flags & (METH_CLASS | METH_STATIC))) add_tensor_method(*def);
  // After Tensor was made: its slots are those that CPython's own methods gave it.
  add_operator_methods();
  // Makes NumPy scalars and arrays leave binary operators to Tensor.
  checked(
      PyDict_SetItemString(tensor_base_type.tp_dict, "__array_priority__", integer(1000).get()));
  PyType_Modified(&tensor_base_type);
}
}  // namespace

void throw_no_tensor(PyObject* o) {
  throw Error(ErrorKind::Runtime, "this ", type_name(o),
              " holds no tensor: its class's __new__ did not call Tensor's");
}

PyObject* wrap(Tensor t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (PyObject* o = scheme::object_of(*t.get())) return o;
  PyObject* o = new_object(tensor_type);
  if (o) scheme::adopt(o, *t.leak());
  return o;
}

Object wrap_as(PyTypeObject* type, Tensor t) {
  check(!t->python_object.load(), "expected a tensor that has no Python object yet");
  Object o = Object::take(new_object(type));
  mark_subclass(type, t);
  scheme::adopt(o.get(), *t.leak());
  return o;
}

void add_tensor_type(PyObject* module) {
  ready_type(tensor_meta_type);
  Py_SET_TYPE(&tensor_base_type, &tensor_meta_type);
  add_type(module, tensor_base_type, "TensorBase");
  speed_up_properties(&tensor_base_type);
  checked(PyObject_SetAttrString(module, "_TensorMeta",
                                 reinterpret_cast<PyObject*>(&tensor_meta_type)));
  const Object made = Object::take(
      PyObject_CallFunction(reinterpret_cast<PyObject*>(&tensor_meta_type), "s(O){ss}", "Tensor",
                            &tensor_base_type, "__module__", std::string(package_name()).c_str()));
  tensor_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(made.get()));
  install(tensor_type, kind);
  add_methods();
  checked(PyObject_SetAttrString(module, "Tensor", made.get()));
}

}  // namespace facula::python
