#include "bindings/module/dict_lookup.h"

namespace facula::python {

#if PY_VERSION_HEX < 0x030C0000

KnownName known_names[most_known_names] = {};

namespace {
void remember(PyObject* dict, PyObject* name, PyObject* found) {
  KnownName& known = known_name(dict, name);
  PyObject* before = std::exchange(known.name, Py_NewRef(name));
  known.version = reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
  known.value = found;
  Py_XDECREF(before);
}
}  // namespace

#else

namespace {
void remember(PyObject*, PyObject*, PyObject*) {}
}  // namespace

#endif

PyObject* look_up_name(PyObject* dict, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (!found && PyErr_Occurred()) throw_python();
  remember(dict, name, found);
  return found;
}

}  // namespace facula::python
