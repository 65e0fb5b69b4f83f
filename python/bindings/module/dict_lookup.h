// A cache for looking up names in dicts that seldom change, such as those of modules.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// find_name without the cache; stores what it finds there.
PyObject* look_up_name(PyObject* dict, PyObject* name);

#if PY_VERSION_HEX < 0x030C0000

// A cached look-up. CPython gives each state of each dict a version number that is never used
// again.
struct KnownName {
  uint64_t version;
  PyObject* name;   // owned
  PyObject* value;  // borrowed from the dict; null if it lacks the name
};
inline constexpr size_t most_known_names = 512;
extern KnownName known_names[most_known_names];
inline KnownName& known_name(PyObject* dict, PyObject* name) {
  const auto place =
      reinterpret_cast<uintptr_t>(dict) / 32 + reinterpret_cast<uintptr_t>(name) / 16;
  return known_names[place % most_known_names];
}

// A borrowed item of a dict, or null. Raises if comparing keys raises. Uses the cache if the dict
// has not changed since. Called under the GIL.
inline PyObject* find_name(PyObject* dict, PyObject* name) {
  const KnownName& known = known_name(dict, name);
  const uint64_t version = reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
  return known.version == version && known.name == name ? known.value : look_up_name(dict, name);
}

#else

// CPython 3.12 and later have no public version numbers of dicts.
inline PyObject* find_name(PyObject* dict, PyObject* name) { return look_up_name(dict, name); }

#endif

}  // namespace facula::python
