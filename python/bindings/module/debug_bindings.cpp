// For debugging: the table of environment variables, the debug level, the list of layers.
#include "bindings/tensor/tensor_members.h"
#include "core/debug.h"
#include "core/environment.h"
#include "dispatch/debug_print.h"

namespace facula::python {
namespace {

PyObject* text_object(std::string_view s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

// _environment_switches(): [(name, other name, values, meaning, current value or None)]
Object switches(PyObject*, PyObject*) {
  Object list = Object::take(PyList_New(0));
  for (const Switch& s : environment_switches()) {
    const Object row = Object::take(
        Py_BuildValue("(NNNNz)", text_object(s.name), text_object(s.also), text_object(s.values),
                      text_object(s.meaning), environment_value(s.name)));
    checked(PyList_Append(list.get(), row.get()));
  }
  return list;
}

// _set_debug_level(level): has the same effect as the environment variable FACULA_DEBUG.
Object set_debug_level(PyObject*, PyObject* level) {
  const long wanted = PyLong_AsLong(level);
  if (wanted == -1 && PyErr_Occurred()) throw_python();
  check_value(wanted >= 0 && wanted <= static_cast<int>(debug::Level::Memory),
              "_set_debug_level(): expected a number from 0 to 4; got ", wanted);
  debug::set_level(static_cast<debug::Level>(wanted));
  return none();
}

// _layers(): [(name, whether it has a handler for all operators)], in the order in which they run.
Object layers(PyObject*, PyObject*) {
  Object list = Object::take(PyList_New(0));
  for (int i = layer_count - 1; i >= 0; --i) {
    const Object row = Object::take(Py_BuildValue("(sN)", layer_name(static_cast<Layer>(i)),
                                                  PyBool_FromLong(layer_handlers[i] != nullptr)));
    checked(PyList_Append(list.get(), row.get()));
  }
  return list;
}

PyMethodDef functions[] = {{"_environment_switches", guarded<switches>, METH_NOARGS, nullptr},
                           {"_set_debug_level", guarded<set_debug_level>, METH_O, nullptr},
                           {"_layers", guarded<layers>, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_debug(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
