// Converts facula::Error to Python exceptions, and carries Python exceptions through C++ frames.
#include <atomic>
#include <new>

#include "bindings/module/package.h"
#include "bindings/module/python.h"

namespace facula::python {

PyObject* linalg_error = nullptr;
PyObject* out_of_memory_error = nullptr;
PyObject* accelerator_error = nullptr;

namespace {

PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Key:
      return PyExc_KeyError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::Memory:
      return out_of_memory_error ? out_of_memory_error : PyExc_MemoryError;
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
    case ErrorKind::Import:
      return PyExc_ImportError;
    case ErrorKind::Attribute:
      return PyExc_AttributeError;
    case ErrorKind::Assertion:
      return PyExc_AssertionError;
    case ErrorKind::LinAlg:
      return linalg_error ? linalg_error : PyExc_RuntimeError;
    case ErrorKind::Accelerator:
      return accelerator_error ? accelerator_error : PyExc_RuntimeError;
    case ErrorKind::StopIteration:
      return PyExc_StopIteration;
    default:
      return PyExc_RuntimeError;
  }
}

// The text of the exception that is set, without clearing it.
std::string pending_text() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  std::string text = "Python exception";
  if (PyObject* s = value ? PyObject_Str(value) : nullptr) {
    if (const char* chars = PyUnicode_AsUTF8(s)) text = chars;
    Py_DECREF(s);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return text;
}

}  // namespace

void throw_python() { throw Error(ErrorKind::Python, pending_text()); }

void throw_type(const std::string& text) { throw Error(ErrorKind::Type, text); }

namespace {
std::atomic<uint64_t> given{0};
}  // namespace

void warn_user(const char* text) {
  given.fetch_add(1, std::memory_order_relaxed);
  if (PyErr_WarnEx(PyExc_UserWarning, text, 1) < 0) throw_python();
}
uint64_t warnings_given() { return given.load(std::memory_order_relaxed); }

void set_python_error() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Python && PyErr_Occurred()) return;
    PyErr_SetString(class_of(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "facula: an unknown C++ exception");
  }
}

void add_type(PyObject* module, PyTypeObject& type, const char* name) {
  ready_type(type);
  Py_INCREF(&type);
  if (PyModule_AddObject(module, name, reinterpret_cast<PyObject*>(&type)) < 0) {
    Py_DECREF(&type);
    throw_python();
  }
}

}  // namespace facula::python
