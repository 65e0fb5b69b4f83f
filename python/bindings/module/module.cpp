// The extension module facula._C.
#include "bindings/call/callable.h"
#include "bindings/distributed/distributed_bindings.h"
#include "bindings/distributed/store_bindings.h"
#include "bindings/modes/capture_bindings.h"
#include "bindings/modes/overrides.h"
#include "bindings/modes/recorder_bindings.h"
#include "bindings/modes/transforms_bindings.h"
#include "bindings/module/lapack_package.h"
#include "bindings/module/package.h"
#include "bindings/skip/program.h"
#include "bindings/tensor/keep.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

const ObjectHooks object_hooks_in_python{[](void* o) {
                                           HoldGil gil;
                                           Py_INCREF(static_cast<PyObject*>(o));
                                         },
                                         [](void* o) {
                                           if (!may_release()) return;
                                           HoldGil gil;
                                           Py_DECREF(static_cast<PyObject*>(o));
                                         }};

PyObject* new_exception(PyObject* module, const char* place, const char* attribute,
                        PyObject* base) {
  PyObject* e = checked(PyErr_NewException(in_package(place).c_str(), base, nullptr));
  checked(PyObject_SetAttrString(module, attribute, e));
  return e;
}

// A function of facula._C._nn; from then on the module has it.
Object find_in_module(PyObject* module, PyObject* name) {
  const char* full_name = PyModule_GetName(module);
  if (!full_name) throw_python();
  const std::string_view full = full_name;
  PyObject* o = function_object(full.substr(full.rfind("._") + 2), text_of(name));
  if (!o)
    throw Error(ErrorKind::Attribute, "module '", full, "' has no attribute '", text_of(name), "'");
  checked(PyObject_SetAttr(module, name, o));
  return Object::share(o);
}

// facula._C._nn and the like: modules whose functions are made at their first use.
void add_function_module(PyObject* module, const char* name) {
  const std::string full = in_package("_C.") + name;
  const Object made = new_lazy_module(full.c_str());
  static PyMethodDef def = {"__getattr__", guarded<find_in_module>, METH_O, nullptr};
  const Object getter = Object::take(PyCFunction_New(&def, made.get()));
  checked(PyObject_SetAttrString(made.get(), "__getattr__", getter.get()));
  add_submodule(module, name, made.get());
}

void fill(PyObject* module) {
  set_package_name(module);
  linalg_error = new_exception(module, "_C._LinAlgError", "_LinAlgError", PyExc_RuntimeError);
  out_of_memory_error =
      new_exception(module, "OutOfMemoryError", "OutOfMemoryError", PyExc_RuntimeError);
  accelerator_error =
      new_exception(module, "AcceleratorError", "AcceleratorError", PyExc_RuntimeError);
  add_lazy_module(module);
  add_dtypes(module);
  add_device(module);
  add_size(module);
  add_storage(module);
  add_shared_storage(module);
  add_overrides(module);
  add_tensor_type(module);
  add_generator(module);
  add_streams(module);
  add_accelerator(module);
  add_callables(module);
  add_op_overloads(module);
  add_new_tensor(module);
  add_numpy(module);
  add_dlpack(module);
  add_layouts(module);
  add_grad_switches(module);
  add_module_calls(module);
  add_state(module);
  add_autograd(module);
  add_modes(module);
  add_library(module);
  add_transform_functions(module);
  add_capture_functions(module);
  add_recorder_functions(module);
  add_skip(module);
  add_memory(module);
  add_debug(module);
  add_overridable(module);
  add_operator_table(module);
  add_distributed(module);
  add_stores(module);
  add_function_module(module, "_nn");
  object_hooks.store(&object_hooks_in_python);
  python_hooks.store(&keep_hooks);
  set_up_waits();
  offer_lapack_package();
  keep_threads_from_unwinding();
  heed_signals();
  // For tests that load extensions into builds with different records.
  checked(PyModule_AddIntConstant(module, "_record_size", sizeof(OpRecord)));
  checked(PyModule_AddStringConstant(module, "_pyobject_scheme", scheme::name));
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_C",  // import adds the name of the package
                          "The C++ core of facula.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace facula::python

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&facula::python::definition);
  if (!module) return nullptr;
  if (facula::python::guard_status([&] { facula::python::fill(module); }) == 0) return module;
  Py_DECREF(module);
  return nullptr;
}
