#include "bindings/module/lapack_package.h"

#include "bindings/module/python.h"
#include "kernels/cpu/linalg/lapack.h"

namespace facula::python {
namespace {

// The folder of the first place on sys.path that has the package. It is not imported.
Object package_folder() {
  const Object find = imported("importlib.util", "find_spec");
  const Object spec = Object::take(PyObject_CallFunction(find.get(), "s", "scipy_openblas32"));
  if (spec.get() == Py_None) return {};
  const Object places =
      Object::take(PyObject_GetAttrString(spec.get(), "submodule_search_locations"));
  return Object::take(PySequence_GetItem(places.get(), 0));
}

std::string library_folder() {
  HoldGil gil;
  try {
    const Object folder = package_folder();
    const char* text = folder ? PyUnicode_AsUTF8(folder.get()) : "";
    if (text != nullptr) return *text == '\0' ? "" : concat(text, "/lib");
  } catch (const Error&) {
    // Whatever keeps Python from finding a package: the next place is looked at.
  }
  PyErr_Clear();
  return "";
}

}  // namespace

void offer_lapack_package() { cpu::lapack::set_locator(library_folder); }

}  // namespace facula::python
