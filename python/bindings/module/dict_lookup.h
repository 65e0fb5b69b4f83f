// Names in dicts that seldom change: those of modules and of their instances.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// The same as find_name, without knowing anything.
PyObject* look_up_name(PyObject* dict, PyObject* name);

#if PY_VERSION_HEX < 0x030C0000

// What was found or missed last. A dict's version is that of one state of one dict: no other ever
// has it.
struct KnownName {
  uint64_t version;
  PyObject* name;   // owned
  PyObject* value;  // the dict's; null where it has none
};
inline constexpr size_t most_known_names = 512;
extern KnownName known_names[most_known_names];
inline KnownName& known_name(PyObject* dict, PyObject* name) {
  const auto place =
      reinterpret_cast<uintptr_t>(dict) / 32 + reinterpret_cast<uintptr_t>(name) / 16;
  return known_names[place % most_known_names];
}

// A borrowed item of a dict, or null where there is none; raises where a key's comparison does.
// What is known of the dict is used as long as it stays as it was. Under the GIL.
inline PyObject* find_name(PyObject* dict, PyObject* name) {
  const KnownName& known = known_name(dict, name);
  const uint64_t version = reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
  return known.version == version && known.name == name ? known.value : look_up_name(dict, name);
}

#else

// Later versions of CPython keep no versions of dicts, or no public ones.
inline PyObject* find_name(PyObject* dict, PyObject* name) { return look_up_name(dict, name); }

#endif

}  // namespace facula::python
