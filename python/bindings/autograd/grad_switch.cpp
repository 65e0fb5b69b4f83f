// The bases of no_grad and enable_grad, written in C++ to enter and exit without a Python frame.
#include "bindings/tensor/tensor_members.h"
#include "dispatch/call.h"

#include <structmember.h>

namespace facula::python {
namespace {

struct GradSwitch {
  PyObject_HEAD char before;  // whether grad mode was on when the block was entered
};
GradSwitch* self_of(PyObject* o) { return reinterpret_cast<GradSwitch*>(o); }

template <bool on>
PyObject* enter(PyObject* self, PyObject*) {
  self_of(self)->before = thread_state.grad_enabled;
  thread_state.grad_enabled = on;
  Py_RETURN_NONE;
}
PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  thread_state.grad_enabled = self_of(self)->before;
  Py_RETURN_NONE;
}

// no_grad() makes a context manager; no_grad(function) and @no_grad decorate a function.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* function = nullptr;
  static const char* keys[] = {"orig_func", nullptr};
  if (PyTuple_GET_SIZE(args) || kwargs)
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(keys), &function))
      return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self || !function || function == Py_None) return self;
  PyObject* decorated = PyObject_CallOneArg(self, function);
  Py_DECREF(self);
  return decorated;
}

PyMemberDef members[] = {
    {"prev", T_BOOL, offsetof(GradSwitch, before), 0, "Grad mode when the block was entered."},
    {nullptr, 0, 0, 0, nullptr}};

template <bool on>
PyMethodDef methods[] = {
    {"__enter__", enter<on>, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject make_type(const char* name, const char* doc, PyMethodDef* with) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_doc = doc;
  t.tp_basicsize = sizeof(GradSwitch);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_new = make;
  t.tp_members = members;
  t.tp_methods = with;
  return t;
}
PyTypeObject off_type = make_type("facula._C._GradOff", "Base of no_grad.", methods<false>);
PyTypeObject on_type = make_type("facula._C._GradOn", "Base of enable_grad.", methods<true>);

}  // namespace

void add_grad_switches(PyObject* module) {
  add_type(module, off_type, "_GradOff");
  add_type(module, on_type, "_GradOn");
}

}  // namespace facula::python
