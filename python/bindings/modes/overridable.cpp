// Wraps functions written in Python so that __torch_function__ can override them. A wrapper written
// in Python would cost a frame for each call.
#include "bindings/modes/overrides.h"
#include "bindings/tensor/tensor_members.h"

namespace facula::python {
namespace {

struct OverridableObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;  // the Python function; attributes are looked up there
  PyObject* dict;
  PyObject* weakrefs;
  // A faster equivalent of the function for calls with `least` to `most` positional arguments and
  // no keywords; or null.
  PyObject* direct;
  Py_ssize_t least, most;
  // arrange(function, args, kwargs) -> (args, kwargs): what an override is told, or null for the
  // arguments as they were given.
  PyObject* arrange;
};
OverridableObject* self_of(PyObject* o) { return reinterpret_cast<OverridableObject*>(o); }

bool is_list(PyObject* o) { return PyTuple_CheckExact(o) || PyList_CheckExact(o); }

template <class F>
void for_each_argument(PyObject* const* args, size_t n, F&& f) {
  for (size_t i = 0; i < n; ++i) {
    f(args[i]);
    if (!is_list(args[i])) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]); ++k)
      f(PySequence_Fast_GET_ITEM(args[i], k));
  }
}

bool is_overridden(PyObject* const* args, size_t n) {
  if (function_mode_active()) return true;
  bool found = false;
  for_each_argument(args, n, [&](PyObject* o) { found = found || has_override(o); });
  return found;
}

Object call_override(PyObject* o, PyObject* const* args, size_t positional, PyObject* keywords) {
  const size_t named = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  std::vector<Object> overloaded;
  for_each_argument(args, positional + named, [&](PyObject* a) { note_overloaded(a, overloaded); });
  const Object tuple = Object::take(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  for (size_t i = 0; i < positional; ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
  const Object dict = Object::take(PyDict_New());
  for (size_t i = 0; i < named; ++i)
    checked(PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i)),
                           args[positional + i]));
  const OverridableObject* self = self_of(o);
  if (!self->arrange) return call_overrides(o, overloaded, tuple.get(), dict.get());
  const Object arranged = Object::take(checked(PyObject_CallFunctionObjArgs(
      self->arrange, self->function, tuple.get(), dict.get(), nullptr)));
  PyObject *positions, *names;
  if (!PyArg_ParseTuple(arranged.get(), "O!O!:arrange", &PyTuple_Type, &positions, &PyDict_Type,
                        &names))
    throw_python();
  return call_overrides(o, overloaded, positions, names);
}

PyObject* vectorcall(PyObject* o, PyObject* const* args, size_t n, PyObject* keywords) {
  const size_t positional = static_cast<size_t>(PyVectorcall_NARGS(n));
  const size_t named = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  const OverridableObject* self = self_of(o);
  if (!is_overridden(args, positional + named)) [[likely]] {
    const auto given = static_cast<Py_ssize_t>(positional);
    const bool direct = self->direct && !keywords && given >= self->least && given <= self->most;
    return PyObject_Vectorcall(direct ? self->direct : self->function, args, n, keywords);
  }
  return guard([&] { return call_override(o, args, positional, keywords).leak(); });
}

// overridable(function, module, direct=None, least=0, most=0, arrange=None)
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    static const char* keys[] = {"function", "module",  "direct", "least",
                                 "most",     "arrange", nullptr};
    PyObject *function, *module, *direct = Py_None, *arrange = Py_None;
    Py_ssize_t least = 0, most = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OU|OnnO:overridable", const_cast<char**>(keys),
                                     &function, &module, &direct, &least, &most, &arrange))
      throw_python();
    check_type(PyCallable_Check(function), "overridable(): expected a function; got ",
               type_name(function));
    check_type(direct == Py_None || PyCallable_Check(direct),
               "overridable(): expected direct to be a function or None; got ", type_name(direct));
    Object o = Object::take(type->tp_alloc(type, 0));
    OverridableObject* self = self_of(o.get());
    self->vectorcall = vectorcall;
    self->function = Py_NewRef(function);
    self->direct = direct == Py_None ? nullptr : Py_NewRef(direct);
    self->arrange = arrange == Py_None ? nullptr : Py_NewRef(arrange);
    self->least = least;
    self->most = most;
    self->dict = PyDict_New();
    checked(PyDict_SetItemString(self->dict, "__module__", module));
    checked(PyDict_SetItemString(self->dict, "__wrapped__", function));
    const Object doc = attribute(function, "__doc__");
    checked(PyDict_SetItemString(self->dict, "__doc__", doc.get()));
    return o.leak();
  });
}

PyObject* get_attribute(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(self_of(o)->function, name);
}

PyObject* bind(PyObject* o, PyObject* self, PyObject*) {
  return self && self != Py_None ? PyMethod_New(o, self) : Py_NewRef(o);
}

PyObject* repr(PyObject* o) {
  return guard([&] {
    const Object name = attribute(o, "__qualname__");
    return checked(PyUnicode_FromFormat("<function %U at %p>", name.get(), o));
  });
}

// Pickles by name, as functions do.
PyObject* reduce(PyObject* o, PyObject*) {
  return guard([&] { return attribute(self_of(o)->function, "__qualname__").leak(); });
}
PyObject* itself(PyObject* o, PyObject*) { return Py_NewRef(o); }

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(self_of(o)->function);
  Py_VISIT(self_of(o)->direct);
  Py_VISIT(self_of(o)->arrange);
  Py_VISIT(self_of(o)->dict);
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(self_of(o)->dict);
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (self_of(o)->weakrefs) PyObject_ClearWeakRefs(o);
  clear(o);
  Py_CLEAR(self_of(o)->function);
  Py_CLEAR(self_of(o)->direct);
  Py_CLEAR(self_of(o)->arrange);
  Py_TYPE(o)->tp_free(o);
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {"__copy__", itself, METH_NOARGS, nullptr},
                         {"__deepcopy__", itself, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C.overridable";
  t.tp_doc =
      "overridable(function, module, direct=None, least=0, most=0, arrange=None): the function, "
      "asking __torch_function__ first. Given least to most arguments by position and no others, "
      "it is direct. An override is told of the arguments as arrange(function, args, kwargs) gives "
      "them.";
  t.tp_basicsize = sizeof(OverridableObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC |
               Py_TPFLAGS_METHOD_DESCRIPTOR;
  t.tp_vectorcall_offset = offsetof(OverridableObject, vectorcall);
  t.tp_dictoffset = offsetof(OverridableObject, dict);
  t.tp_weaklistoffset = offsetof(OverridableObject, weakrefs);
  t.tp_call = PyVectorcall_Call;
  t.tp_new = make;
  t.tp_getattro = get_attribute;
  t.tp_descr_get = bind;
  t.tp_repr = repr;
  t.tp_traverse = traverse;
  t.tp_clear = clear;
  t.tp_dealloc = dealloc;
  t.tp_methods = methods;
  t.tp_getset = properties;
  return t;
}
PyTypeObject type = make_type();

}  // namespace

void add_overridable(PyObject* module) { add_type(module, type, "overridable"); }

}  // namespace facula::python
