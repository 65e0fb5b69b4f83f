#include "dict_lookup.h"

namespace facula::python {
namespace {

PyObject* look_up(PyObject* dict, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (!found && PyErr_Occurred()) throw_python();
  return found;
}

}  // namespace

#if PY_VERSION_HEX < 0x030C0000

namespace {
// A dict's version is that of one state of one dict: no other ever has it.
struct Known {
  uint64_t version;
  PyObject* name;   // owned
  PyObject* value;  // the dict's; null where it has none
};
}  // namespace

PyObject* find_name(PyObject* dict, PyObject* name) {
  static Known table[512] = {};
  const auto place =
      reinterpret_cast<uintptr_t>(dict) / 32 + reinterpret_cast<uintptr_t>(name) / 16;
  Known& known = table[place % std::size(table)];
  const uint64_t version = reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
  if (known.version == version && known.name == name) return known.value;
  PyObject* found = look_up(dict, name);
  PyObject* before = std::exchange(known.name, Py_NewRef(name));
  known.version = version;
  known.value = found;
  Py_XDECREF(before);
  return found;
}

#else

// Later versions of CPython keep no versions of dicts, or no public ones.
PyObject* find_name(PyObject* dict, PyObject* name) { return look_up(dict, name); }

#endif

}  // namespace facula::python
