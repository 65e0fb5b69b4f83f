// Anomaly mode in Python: tracebacks of forward calls.
#include "autograd/anomaly.h"

#include "bindings/autograd/autograd_objects.h"
#include "bindings/autograd/node_object.h"

namespace facula::python {
namespace {

PyObject* helper(const char* name) {
  const Object module = imported("facula.autograd.anomaly_mode");
  return attribute(module.get(), name).leak();
}

// Keeps the Python error that is set while these helpers run, whatever errors they cause.
class KeepError {
 public:
  KeepError() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~KeepError() { PyErr_Restore(type_, value_, trace_); }

 private:
  PyObject *type_, *value_, *trace_;
};

void made(Node& n, Node* during) {
  if (!may_release()) return;
  HoldGil gil;
  const KeepError keep;
  static PyObject* traceback = helper("_traceback");
  const Object dict = node_metadata(n), lines = Object::take(PyObject_CallNoArgs(traceback));
  checked(PyDict_SetItemString(dict.get(), "traceback_", lines.get()));
  if (!during) return;
  const Object parent = node_object(Ref<Node>::share(during));
  checked(PyDict_SetItemString(dict.get(), "parent_", parent.get()));
}

void failed(Node& n) {
  HoldGil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  static PyObject* report = helper("_report");
  const Object dict = node_metadata(n), name = string(n.name());
  const Object done =
      Object::maybe(PyObject_CallFunctionObjArgs(report, name.get(), dict.get(), nullptr));
  // If warnings are errors, this one is raised only if no other error is set.
  if (!done && !type) PyErr_Fetch(&type, &value, &trace);
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

std::string line_of(const Node& n) {
  if (!n.metadata() || !Py_IsInitialized()) return {};
  HoldGil gil;
  const KeepError keep;
  static PyObject* read = helper("_line");
  const Object dict = node_metadata(const_cast<Node&>(n));
  const Object line = Object::take(PyObject_CallOneArg(read, dict.get()));
  return std::string(text_of(line.get()));
}

std::string current_line() {
  if (!Py_IsInitialized()) return {};
  HoldGil gil;
  const KeepError keep;
  static PyObject* read = helper("_current_line");
  const Object line = Object::take(PyObject_CallNoArgs(read));
  return std::string(text_of(line.get()));
}

constexpr AnomalyHooks hooks{made, failed, line_of, current_line};

Object set(PyObject*, PyObject* args) {
  int on, check_nan = 1;
  if (!PyArg_ParseTuple(args, "p|p:_set_anomaly_enabled", &on, &check_nan)) throw_python();
  set_anomaly(on, check_nan);
  return none();
}
Object enabled(PyObject*, PyObject*) { return boolean(anomaly_enabled()); }
Object checks_nan(PyObject*, PyObject*) { return boolean(anomaly_checks_nan.load()); }

PyMethodDef functions[] = {
    {"_set_anomaly_enabled", guarded<set>, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", guarded<enabled>, METH_NOARGS, "Whether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled", guarded<checks_nan>, METH_NOARGS,
     "Whether anomaly mode searches gradients for NaN."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_anomaly(PyObject* module) {
  checked(PyModule_AddFunctions(module, functions));
  anomaly_hooks.store(&hooks, std::memory_order_release);
}

}  // namespace facula::python
