// The name that the package was imported under: "facula", or "torch" when it replaces PyTorch
// (docs/internals/running_unmodified.md). Error texts and `__module__` attributes use it.
#pragma once
#include <string>
#include <string_view>

#include "bindings/module/python.h"

namespace facula::python {

// Sets it from the name of the extension module, "facula._C" or "torch._C".
void set_package_name(PyObject* extension_module);
std::string_view package_name();
// The full name of an attribute of the package: "Size" becomes "facula.Size".
std::string in_package(std::string_view place);
// PyType_Ready for a type whose tp_name begins with "facula.".
void ready_type(PyTypeObject& type);
// Makes `module` the attribute `name` of the extension module, and importable by its full name.
void add_submodule(PyObject* extension_module, const char* name, PyObject* module);

}  // namespace facula::python
