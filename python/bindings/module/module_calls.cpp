// nn.Module.__call__ and attribute look-ups of modules, without a Python frame.
#include "bindings/module/dict_lookup.h"
#include "bindings/tensor/tensor_members.h"
#include "core/inline_vector.h"

namespace facula::python {
namespace {

PyObject* interned(const char* text) { return checked(PyUnicode_InternFromString(text)); }

struct Words {
  PyObject* forward = interned("forward");
  PyObject* call_impl = interned("_call_impl");
  PyObject* compiled_call = interned("_compiled_call_impl");
  PyObject* getattr = interned("__getattr__");
  PyObject* getattribute = interned("__getattribute__");
  PyObject* hooks[4] = {interned("_forward_hooks"), interned("_forward_pre_hooks"),
                        interned("_backward_hooks"), interned("_backward_pre_hooks")};
  PyObject* tables[3] = {interned("_parameters"), interned("_modules"), interned("_buffers")};
};
const Words& words() {
  static const Words* kept = new Words;
  return *kept;
}

// The dicts of hooks for all modules, and Module.__getattr__; set once by nn.
PyObject* shared_hooks = nullptr;
PyObject* plain_getattr = nullptr;
PyObject* plain_call_impl = nullptr;

bool is_empty_dict(PyObject* o) { return o && PyDict_Check(o) && PyDict_GET_SIZE(o) == 0; }

bool has_no_hooks(PyObject* dict) {
  const Words& w = words();
  for (PyObject* hooks : w.hooks)
    if (!is_empty_dict(find_name(dict, hooks))) return false;
  for (Py_ssize_t i = 0; shared_hooks && i < PyTuple_GET_SIZE(shared_hooks); ++i)
    if (!is_empty_dict(PyTuple_GET_ITEM(shared_hooks, i))) return false;
  return true;
}

bool is_compiled(PyObject* self, PyObject* dict) {
  PyObject* compiled = find_name(dict, words().compiled_call);
  if (!compiled) compiled = _PyType_Lookup(Py_TYPE(self), words().compiled_call);
  return compiled && compiled != Py_None;
}

// Whether the class or the object has a _call_impl of its own.
bool overrides_call(PyObject* self, PyObject* dict) {
  PyObject* name = words().call_impl;
  return _PyType_Lookup(Py_TYPE(self), name) != plain_call_impl || find_name(dict, name);
}

Object call_attribute(PyObject* self, PyObject* name, PyObject* args, PyObject* kwargs) {
  const Object f = Object::take(PyObject_GetAttr(self, name));
  return Object::take(PyObject_Call(f.get(), args, kwargs));
}

Object call_forward(PyObject* self, PyObject* dict, PyObject* args, PyObject* kwargs) {
  const Words& w = words();
  PyObject* f = _PyType_Lookup(Py_TYPE(self), w.forward);
  const bool is_function = f && PyFunction_Check(f) && !find_name(dict, w.forward);
  if (!is_function) return call_attribute(self, w.forward, args, kwargs);
  const Object keep = Object::share(f);
  const auto n = static_cast<size_t>(PyTuple_GET_SIZE(args));
  InlineVector<PyObject*, 8> stack;
  stack.push_back(self);
  for (size_t i = 0; i < n; ++i)
    stack.push_back(PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)));
  return Object::take(PyObject_VectorcallDict(f, stack.begin(), n + 1, kwargs));
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    const Object dict = Object::take(PyObject_GenericGetDict(self, nullptr));
    if (is_compiled(self, dict.get()))
      return call_attribute(self, words().compiled_call, args, kwargs).leak();
    if (!overrides_call(self, dict.get()) && has_no_hooks(dict.get()))
      return call_forward(self, dict.get(), args, kwargs).leak();
    return call_attribute(self, words().call_impl, args, kwargs).leak();
  });
}

// Looks up an attribute without calling __getattr__; null without an error if there is none.
PyObject* plain_attribute(PyObject* self, PyObject* name) {
#if PY_VERSION_HEX < 0x030D0000
  return _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1);
#else
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return found;
#endif
}

// A registered parameter, buffer or submodule; a new reference, or null if there is none.
PyObject* registered(PyObject* dict, PyObject* name) {
  for (PyObject* word : words().tables) {
    PyObject* table = find_name(dict, word);
    PyObject* found = table && PyDict_Check(table) ? find_name(table, name) : nullptr;
    if (found) return Py_NewRef(found);
  }
  return nullptr;
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  const bool in_class = _PyType_Lookup(Py_TYPE(self), name) != nullptr;
  PyObject* found = in_class ? plain_attribute(self, name) : nullptr;
  if (found || PyErr_Occurred()) return found;
  return guard([&] {
    const Object dict = Object::take(PyObject_GenericGetDict(self, nullptr));
    if (PyObject* own = in_class ? nullptr : find_name(dict.get(), name)) return Py_NewRef(own);
    if (PyObject* r = registered(dict.get(), name)) return r;
    return checked(PyObject_CallFunctionObjArgs(plain_getattr, self, name, nullptr));
  });
}

// _set_up_module(Module, hooks): sets Module.__call__ and _wrapped_call_impl, and remembers
// Module.__getattr__ and the dicts of hooks for all modules. Module remains a class written in
// Python: with a base class in C++, assigning to `module.__class__` would fail for classes with
// further bases.
PyObject* set_up(PyObject*, PyObject* args) {
  PyObject *cls, *hooks;
  if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &cls, &PyTuple_Type, &hooks)) return nullptr;
  return guard([&] {
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    PyObject* word = interned("__call__");
    auto* like = reinterpret_cast<PyWrapperDescrObject*>(_PyType_Lookup(&PyType_Type, word));
    const Object descriptor =
        Object::take(PyDescr_NewWrapper(type, like->d_base, reinterpret_cast<void*>(call)));
    checked(PyObject_SetAttr(cls, word, descriptor.get()));
    checked(PyObject_SetAttr(cls, interned("_wrapped_call_impl"), descriptor.get()));
    Py_XSETREF(plain_getattr, Py_XNewRef(_PyType_Lookup(type, words().getattr)));
    Py_XSETREF(plain_call_impl, Py_XNewRef(_PyType_Lookup(type, words().call_impl)));
    Py_XSETREF(shared_hooks, Py_NewRef(hooks));
    return Py_NewRef(Py_None);
  });
}

// _look_up_here(cls): makes attribute look-ups of this class skip Module.__getattr__, if that is
// the class's __getattr__. Assigning another to the class undoes it.
PyObject* look_up_here(PyObject*, PyObject* cls) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  static PyObject* const plain = _PyType_Lookup(&PyBaseObject_Type, words().getattribute);
  if (_PyType_Lookup(type, words().getattr) == plain_getattr &&
      _PyType_Lookup(type, words().getattribute) == plain)
    type->tp_getattro = get_attribute;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_set_up_module", set_up, METH_VARARGS, nullptr},
                           {"_look_up_here", look_up_here, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_module_calls(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
