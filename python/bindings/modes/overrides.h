// __torch_function__: objects that take over the functions that they are given to, and the modes
// that take over all. The check costs nothing for exact Tensors.
#pragma once
#include <vector>

#include "bindings/module/python.h"
#include "core/tensor.h"
#include "dispatch/call.h"

namespace facula::python {

// Whether the object's class has a __torch_function__ of its own that is in force.
bool has_override(PyObject* o);
// Adds an object with an override to a list ordered by the precedence of their classes.
void note_overloaded(PyObject* o, std::vector<Object>& list);
inline bool function_mode_active() {
  return thread_state.overrides.depth > 0 && thread_state.overrides.all_enabled;
}
// Calls the overrides, modes first; TypeError when all return NotImplemented.
Object call_overrides(PyObject* function, const std::vector<Object>& overloaded, PyObject* args,
                      PyObject* kwargs);

// A tensor given to a method or property that is no operator: calls the override of a subclass
// with the attribute `name` of facula.Tensor. Empty when there is none to call.
Object self_override(PyObject* self, const char* name, PyObject* args = nullptr,
                     PyObject* kwargs = nullptr);

// The overrides of what a function of the extension was given, and modes; empty when there are
// none.
Object argument_override(const char* name, PyObject* args, PyObject* kwargs);
Object argument_override(const char* name, PyObject* argument);

// A function of the extension that no tensor is given to: function modes see it all the same. Empty
// when no mode is on; `name` is that of facula's attribute.
Object mode_override(const char* name, PyObject* args, PyObject* kwargs);

// Classes with a __torch_dispatch__ of their own get their calls at Layer::Subclass.
void mark_subclass(PyTypeObject* type, const Tensor& t);
// facula._C._disabled_torch_function_impl. Borrowed.
PyObject* disabled_torch_function();

void add_overrides(PyObject* module);

}  // namespace facula::python
