// The type of modules with __getattr__. CPython caches attribute look-ups only for modules without
// __getattr__; this type looks in the module's dict first, with a cache of its own.
#include "bindings/module/dict_lookup.h"
#include "bindings/tensor/tensor_members.h"

namespace facula::python {
namespace {

PyObject* get_attribute(PyObject* self, PyObject* name) {
  return guard([&] {
    PyObject* found = find_name(PyModule_GetDict(self), name);
    return found ? Py_NewRef(found) : PyModule_Type.tp_getattro(self, name);
  });
}

PyTypeObject make_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C.LazyModule";
  t.tp_doc = "A module with __getattr__; what it has already is found fast.";
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_base = &PyModule_Type;
  t.tp_getattro = get_attribute;
  return t;
}
PyTypeObject type = make_type();

// _lazy_module(name): gives an imported module this type.
Object make_lazy(PyObject*, PyObject* name) {
  PyObject* module = PyDict_GetItemWithError(PyImport_GetModuleDict(), name);
  check_type(module && PyModule_Check(module), "_lazy_module(): expected the name of a module");
  checked(PyObject_SetAttrString(module, "__class__", reinterpret_cast<PyObject*>(&type)));
  return none();
}

PyMethodDef functions[] = {{"_lazy_module", guarded<make_lazy>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_lazy_module(PyObject* module) {
  add_type(module, type, "_LazyModule");
  checked(PyModule_AddFunctions(module, functions));
}

Object new_lazy_module(const char* name) {
  const Object text = string(name);
  return Object::take(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&type), text.get()));
}

}  // namespace facula::python
