// Shows a function of Python each instruction that this thread is about to run, with the values on
// the frame's stack. CPython 3.11 only, of whose frames this knows the fields.
#include "bindings/skip/program.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace facula::python {
namespace {

// Stands for an empty place of a stack.
PyObject* no_value = nullptr;

PyObject* stack_of(const _PyInterpreterFrame* f) {
  const int from = f->f_code->co_nlocalsplus, to = f->stacktop;
  PyObject* values = PyTuple_New(std::max(0, to - from));
  for (int i = from; values && i < to; ++i)
    PyTuple_SET_ITEM(values, i - from, Py_NewRef(f->localsplus[i] ? f->localsplus[i] : no_value));
  return values;
}

// watcher(event, frame, function, last instruction, stack); where it gives False, no more is shown.
bool tell(PyObject* watcher, int event, PyFrameObject* frame, PyObject* values) {
  if (!values) return false;
  const _PyInterpreterFrame* f = frame->f_frame;
  PyObject* answer = PyObject_CallFunction(
      watcher, "iOOiO", event, frame, reinterpret_cast<PyObject*>(f->f_func),
      _PyInterpreterFrame_LASTI(f) * static_cast<int>(sizeof(_Py_CODEUNIT)), values);
  Py_DECREF(values);
  const bool goes_on = answer == Py_True;
  Py_XDECREF(answer);
  return goes_on;
}

int trace(PyObject* watcher, PyFrameObject* frame, int event, PyObject* value) {
  bool goes_on = true;
  if (event == PyTrace_CALL) {
    frame->f_trace_opcodes = 1;
    goes_on = tell(watcher, event, frame, PyTuple_New(0));
  } else if (event == PyTrace_OPCODE) {
    goes_on = tell(watcher, event, frame, stack_of(frame->f_frame));
  } else if (event == PyTrace_RETURN || event == PyTrace_EXCEPTION) {
    goes_on = tell(watcher, event, frame, PyTuple_Pack(1, value ? value : no_value));
  }
  if (goes_on) return 0;
  PyEval_SetTrace(nullptr, nullptr);
  return PyErr_Occurred() ? -1 : 0;
}

// _watch_frames(watcher)
Object watch_frames(PyObject*, PyObject* watcher) {
  if (watcher == Py_None)
    PyEval_SetTrace(nullptr, nullptr);
  else
    PyEval_SetTrace(trace, watcher);
  return none();
}

PyMethodDef functions[] = {{"_watch_frames", guarded<watch_frames>, METH_O,
                            "Shows a function each instruction of this thread; None ends it."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_frame_functions(PyObject* module) {
  no_value = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  checked(PyModule_AddObjectRef(module, "_no_value", no_value));
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python

#else

namespace facula::python {
void add_frame_functions(PyObject*) {}
}  // namespace facula::python

#endif
