#include "bindings/module/package.h"

#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

constexpr std::string_view own_name = "facula";
std::string current(own_name);

}  // namespace

void set_package_name(PyObject* extension_module) {
  const char* full = PyModule_GetName(extension_module);
  if (!full) throw_python();
  const std::string_view name = full;
  current = name.substr(0, name.find('.'));
}

std::string_view package_name() { return current; }

std::string in_package(std::string_view place) { return current + "." + std::string(place); }

void ready_type(PyTypeObject& type) {
  const std::string_view written = type.tp_name;
  if (current != own_name && written.starts_with(std::string(own_name) + "."))
    // Never freed, since the type refers to it.
    type.tp_name = (new std::string(in_package(written.substr(own_name.size() + 1))))->c_str();
  checked(PyType_Ready(&type));
}

void add_submodule(PyObject* extension_module, const char* name, PyObject* module) {
  checked(PyObject_SetAttrString(extension_module, name, module));
  PyObject* modules = PyImport_GetModuleDict();
  const std::string place = std::string("_C.") + name;
  checked(PyDict_SetItemString(modules, in_package(place).c_str(), module));
  checked(PyDict_SetItemString(modules, concat(own_name, ".", place).c_str(), module));
}

}  // namespace facula::python
