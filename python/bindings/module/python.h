// Helpers for the CPython API: owned references, and errors passed from C++ to Python and back.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

#include "bindings/module/gil.h"
#include "core/error.h"

namespace facula::python {

// Throws a C++ exception for the Python exception that is set.
[[noreturn]] void throw_python();
// Turns the C++ exception being handled into a Python exception.
void set_python_error() noexcept;
// Throws a TypeError.
[[noreturn]] void throw_type(const std::string& text);

// Gives a UserWarning, or throws where the program makes it an error.
void warn_user(const char* text);
// How many warn_user() has given, in all threads.
uint64_t warnings_given();

// The Python exception classes for ErrorKind::LinAlg, Memory and Accelerator.
extern PyObject* linalg_error;
extern PyObject* out_of_memory_error;
extern PyObject* accelerator_error;

// One owned reference.
class Object {
 public:
  Object() = default;
  Object(const Object& o) : p_(o.p_) { Py_XINCREF(p_); }
  Object(Object&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ~Object() { Py_XDECREF(p_); }
  Object& operator=(Object o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  // Adopts the result of a call that may have failed.
  static Object take(PyObject* p) {
    if (!p) throw_python();
    Object o;
    o.p_ = p;
    return o;
  }
  static Object maybe(PyObject* p) {
    Object o;
    o.p_ = p;
    return o;
  }
  static Object share(PyObject* p) {
    Py_XINCREF(p);
    return maybe(p);
  }
  PyObject* get() const { return p_; }
  PyObject* leak() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// The value of an int, read directly if it has one digit. Sets `overflow` if int64 is too small.
// Returns -1 with a Python error set if the object is no int.
inline int64_t long_value(PyObject* o, int& overflow) {
  overflow = 0;
#if PY_VERSION_HEX < 0x030C0000
  const auto* l = reinterpret_cast<PyLongObject*>(o);
  if (PyLong_Check(o) && (Py_SIZE(o) == 1 || Py_SIZE(o) == 0))
    return Py_SIZE(o) ? l->ob_digit[0] : 0;
#else
  if (PyLong_Check(o) && PyUnstable_Long_IsCompact(reinterpret_cast<PyLongObject*>(o)))
    return PyUnstable_Long_CompactValue(reinterpret_cast<PyLongObject*>(o));
#endif
  return PyLong_AsLongLongAndOverflow(o, &overflow);
}

inline PyObject* checked(PyObject* p) {
  if (!p) throw_python();
  return p;
}
inline void checked(int status) {
  if (status < 0) throw_python();
}

// Runs a function that may throw; a null pointer or -1 then says that a Python exception is set.
template <class F>
PyObject* guard(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
template <class F>
int guard_status(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// Turn a function that returns an owned Object and may throw into a METH_O, METH_NOARGS or getter
// function.
template <auto F>
PyObject* guarded(PyObject* self, PyObject* arg) noexcept {
  return guard([&] { return F(self, arg).leak(); });
}
template <auto F>
PyObject* guarded_nullary(PyObject* self, PyObject*) noexcept {
  return guard([&] { return F(self).leak(); });
}
// The keyword arguments of a call. With f(**d) they may be the caller's own dict, which Python code
// that runs during argument parsing could change; it is copied then.
class OwnKeywords {
 public:
  explicit OwnKeywords(PyObject* kwargs)
      : own_(kwargs && Py_REFCNT(kwargs) > 1 ? Object::take(PyDict_Copy(kwargs))
                                             : Object::share(kwargs)) {}
  PyObject* get() const { return own_.get(); }

 private:
  const Object own_;
};
template <auto F>
PyObject* guarded_keywords(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  return guard([&] { return F(self, args, OwnKeywords(kwargs).get()).leak(); });
}

// Calls read(i, item) for each item of a list or tuple until it returns false; returns whether all
// returned true. Reading an item may run Python code that changes the list, so each item is looked
// up again and held.
template <class F>
bool read_items(PyObject* sequence, F&& read) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
  for (Py_ssize_t i = 0; i < n; ++i) {
    check(PySequence_Fast_GET_SIZE(sequence) == n,
          "a list changed its size while its items were read");
    const Object item = Object::share(PySequence_Fast_GET_ITEM(sequence, i));
    if (!read(static_cast<size_t>(i), item.get())) return false;
  }
  return true;
}

// Checks for signals every few thousand steps of a loop that runs no Python code.
class SignalPoll {
 public:
  void step() {
    if (++steps_ % 8192 == 0 && PyErr_CheckSignals() < 0) [[unlikely]]
      throw_python();
  }

 private:
  uint32_t steps_ = 0;
};

inline Object none() { return Object::share(Py_None); }
inline Object boolean(bool b) { return Object::share(b ? Py_True : Py_False); }
inline Object integer(int64_t v) { return Object::take(PyLong_FromLongLong(v)); }
inline Object string(std::string_view s) {
  return Object::take(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
// Attribute names must be interned: CPython's cache for look-ups in classes keeps each name that it
// is asked for, and would fill up with copies.
inline Object interned(const char* name) { return Object::take(PyUnicode_InternFromString(name)); }
inline Object attribute(PyObject* o, const char* name) {
  return Object::take(PyObject_GetAttr(o, interned(name).get()));
}
// o.name(args...)
template <class... Args>
Object called(PyObject* o, const char* name, Args... args) {
  return Object::take(PyObject_CallMethodObjArgs(o, interned(name).get(), args..., nullptr));
}
inline Object imported(const char* module) { return Object::take(PyImport_ImportModule(module)); }
// Imports a module and returns one of its attributes.
inline Object imported(const char* module, const char* name) {
  return attribute(imported(module).get(), name);
}

// The UTF-8 text of a str; TypeError for anything else. Lives as long as the object.
inline std::string_view text_of(PyObject* s) {
  Py_ssize_t n = 0;
  const char* p = PyUnicode_AsUTF8AndSize(s, &n);
  if (!p) throw_python();
  return {p, static_cast<size_t>(n)};
}
inline const char* type_name(PyObject* o) { return Py_TYPE(o)->tp_name; }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
// A type object whose fields are to be set.
inline PyTypeObject blank_type() { return {PyVarObject_HEAD_INIT(nullptr, 0)}; }
#pragma GCC diagnostic pop

// Makes the type ready and adds it to a module.
void add_type(PyObject* module, PyTypeObject& type, const char* name);

}  // namespace facula::python
