// __torch_function__: lets arguments, and modes, override the functions that they are passed to.
// Checking for an override is free for exact Tensors.
#pragma once
#include <vector>

#include "bindings/module/python.h"
#include "core/tensor.h"
#include "dispatch/call.h"

namespace facula::python {

// Whether the object's class has a __torch_function__ that is not disabled.
bool has_override(PyObject* o);
// Adds an object with an override to a list in the order in which they are asked: subclasses first.
void note_overloaded(PyObject* o, std::vector<Object>& list);
inline bool function_mode_active() {
  return thread_state.overrides.depth > 0 && thread_state.overrides.all_enabled;
}
// Calls the overrides, modes first; TypeError when all return NotImplemented.
Object call_overrides(PyObject* function, const std::vector<Object>& overloaded, PyObject* args,
                      PyObject* kwargs);

// For methods and properties of Tensor that are no operators: calls the override of `self`, if it
// has one, with the attribute `name` of facula.Tensor. Empty if there is none.
Object self_override(PyObject* self, const char* name, PyObject* args = nullptr,
                     PyObject* kwargs = nullptr);

// For functions of the extension module: calls the overrides of the arguments and of modes. Empty
// if there are none.
Object argument_override(const char* name, PyObject* args, PyObject* kwargs);
Object argument_override(const char* name, PyObject* argument);

// For functions that take no tensors: calls the override of modes alone. `name` is the attribute of
// facula. Empty if there is no mode.
Object mode_override(const char* name, PyObject* args, PyObject* kwargs);

// Makes calls on the tensor go to Layer::Subclass if its class has a __torch_dispatch__.
void mark_subclass(PyTypeObject* type, const Tensor& t);
// facula._C._disabled_torch_function_impl. Borrowed.
PyObject* disabled_torch_function();

void add_overrides(PyObject* module);

}  // namespace facula::python
