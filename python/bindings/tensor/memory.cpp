// Host memory for Python: statistics, the cache, and allocation sites.
#include "bindings/tensor/tensor_members.h"
#include "core/allocator.h"
#include "core/fenced.h"
#include "core/holders.h"

namespace facula::python {
namespace {

// The folder of the package; source lines in it are not the user's.
std::string& package_folder() {
  static auto* folder = new std::string;
  return *folder;
}

bool in_package(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  const bool inside = text_of(code->co_filename).starts_with(package_folder());
  Py_DECREF(code);
  return inside;
}

// "file.py:12" of the innermost frame outside of the package. Empty on a thread without the GIL.
std::string python_line() {
  if (!PyGILState_Check()) return {};
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame && in_package(frame)) {
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  if (!frame) return {};
  const Object held = Object::maybe(reinterpret_cast<PyObject*>(frame));
  PyCodeObject* code = PyFrame_GetCode(frame);
  const Object held_code = Object::maybe(reinterpret_cast<PyObject*>(code));
  return concat(text_of(code->co_filename), ":", PyFrame_GetLineNumber(frame));
}

// _track_allocations(folder of the package, or None) -> whether tracking was on before
Object track(PyObject*, PyObject* folder) {
  const bool before = tracks_allocations();
  if (folder != Py_None) package_folder() = text_of(folder);
  set_allocation_site(folder == Py_None ? nullptr : python_line);
  return boolean(before);
}

Object stats(PyObject*, PyObject*) {
  const MemoryStats s = cpu_memory_stats();
  return Object::take(Py_BuildValue(
      "{sLsLsLsLsLsLsLsL}", "allocated", s.allocated, "peak_allocated", s.peak_allocated,
      "reserved", s.reserved, "peak_reserved", s.peak_reserved, "cached", s.cached, "allocations",
      s.allocations, "frees", s.frees, "system_allocations", s.system_allocations));
}
Object empty_cache(PyObject*, PyObject*) {
  cpu_empty_cache();
  return none();
}
Object reset_peak(PyObject*, PyObject*) {
  cpu_reset_peak_memory_stats();
  return none();
}

// _set_fence_fill(byte) -> whether the fenced allocator is in use
Object set_fill(PyObject*, PyObject* byte) {
  const long value = PyLong_AsLong(byte);
  if (value == -1 && PyErr_Occurred()) throw_python();
#if FACULA_FENCED
  set_fence_fill(static_cast<uint8_t>(value));
  return boolean(fences_on());
#else
  return boolean(false);
#endif
}

PyMethodDef functions[] = {{"_track_allocations", guarded<track>, METH_O, nullptr},
                           {"_memory_stats", guarded<stats>, METH_NOARGS, nullptr},
                           {"_empty_cache", guarded<empty_cache>, METH_NOARGS, nullptr},
                           {"_reset_peak_memory_stats", guarded<reset_peak>, METH_NOARGS, nullptr},
                           {"_set_fence_fill", guarded<set_fill>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_memory(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
