// The name that the package was imported under: "facula", or "torch" where it stands in for PyTorch
// (docs/internals/running_unmodified.md). All texts and all `__module__`s that name a place in the
// package are made of it.
#pragma once
#include <string>
#include <string_view>

#include "bindings/module/python.h"

namespace facula::python {

// Takes the name from the extension module's own, "facula._C" or "torch._C".
void set_package_name(PyObject* extension_module);
std::string_view package_name();
// A place in the package with its whole name: "Size" becomes "facula.Size".
std::string in_package(std::string_view place);
// PyType_Ready for a type whose name is written "facula....".
void ready_type(PyTypeObject& type);
// Makes `module` the attribute `name` of the extension module, and importable by its whole name.
void add_submodule(PyObject* extension_module, const char* name, PyObject* module);

}  // namespace facula::python
