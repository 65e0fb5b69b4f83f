// The device type, which is also a context manager that sets the default device.
#include <vector>

#include "bindings/module/package.h"
#include "bindings/tensor/types.h"
#include "core/named_devices.h"
#include "dispatch/call.h"

namespace facula::python {
namespace {

Device& value(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->device; }

thread_local std::vector<Device> entered;  // the defaults to restore on exit

std::string kind_name(DeviceType t) { return str(Device{t, -1}); }

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* keys[] = {"type", "index", nullptr};
    PyObject *type = nullptr, *index = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(keys), &type,
                                     &index))
      return nullptr;
    Device d;
    // One that only has a name is made here and refused where it is used.
    if (is_device(type))
      d = value(type);
    else if (PyUnicode_Check(type))
      d = parse_named_device(text_of(type));
    else if (!device_like(type, d))
      throw_type(
          concat("device(): argument 'type' (position 1) must be str, not ", type_name(type)));
    if (!index || index == Py_None) return device_object(d).leak();
    check(PyUnicode_Check(type) && d.index == -1,
          "Device(): an index is given once, in the text or as an argument; got type '", str(d),
          "' and an index");
    const long at = PyLong_AsLong(index);
    if (at == -1 && PyErr_Occurred()) throw_python();
    check(at >= 0, "Device index must not be negative");
    check(at < 128, "Device index is too large: ", at);
    d.index = static_cast<int8_t>(at);
    return device_object(d).leak();
  });
}

PyObject* device_repr(PyObject* o) {
  const Device d = value(o);
  if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", kind_name(d.type).c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", kind_name(d.type).c_str(), d.index);
}
PyObject* device_str(PyObject* o) {
  return guard([&] { return string(std::string(str(value(o)))).leak(); });
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(a) || !is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value(a) == value(b)) == (op == Py_EQ));
}
Py_hash_t device_hash(PyObject* o) {
  return (static_cast<Py_hash_t>(value(o).type) + 1) * 257 + value(o).index + 1;
}
PyObject* device_kind(PyObject* o, void*) {
  return PyUnicode_FromString(kind_name(value(o).type).c_str());
}
PyObject* device_index(PyObject* o, void*) {
  if (value(o).index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(value(o).index);
}
PyObject* device_module(PyObject*, void*) {
  return guard([] { return string(package_name()).leak(); });
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  const Device d = value(o);
  if (d.index < 0) return Py_BuildValue("(O(s))", Py_TYPE(o), kind_name(d.type).c_str());
  return Py_BuildValue("(O(si))", Py_TYPE(o), kind_name(d.type).c_str(), d.index);
}
PyObject* device_copy(PyObject* o, PyObject*) { return Py_NewRef(o); }

PyObject* device_enter(PyObject* o, PyObject*) {
  return guard([&] {
    check_present(value(o));
    entered.push_back(thread_state.default_device);
    thread_state.default_device = value(o);
    return Py_NewRef(o);
  });
}
PyObject* device_exit(PyObject*, PyObject*) {
  if (!entered.empty()) {
    thread_state.default_device = entered.back();
    entered.pop_back();
  }
  Py_RETURN_FALSE;
}

PyMethodDef methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                         {"__copy__", device_copy, METH_NOARGS, nullptr},
                         {"__deepcopy__", device_copy, METH_O, nullptr},
                         {"__enter__", device_enter, METH_NOARGS, nullptr},
                         {"__exit__", device_exit, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"type", device_kind, nullptr, nullptr, nullptr},
                            {"index", device_index, nullptr, nullptr, nullptr},
                            {"__module__", device_module, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula.device";
  t.tp_basicsize = sizeof(DeviceObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_new = device_new;
  t.tp_repr = device_repr;
  t.tp_str = device_str;
  t.tp_richcompare = device_compare;
  t.tp_hash = device_hash;
  t.tp_methods = methods;
  t.tp_getset = properties;
  t.tp_doc = "A place for tensors: device('cpu'), device('cuda:1'), device('meta').";
  return t;
}

}  // namespace

PyTypeObject device_type = make_type();

Object device_object(Device d) {
  DeviceObject* o = PyObject_New(DeviceObject, &device_type);
  if (!o) throw_python();
  o->device = d;
  return Object::take(reinterpret_cast<PyObject*>(o));
}

bool device_like(PyObject* o, Device& d) {
  if (is_device(o)) {
    d = value(o);
    check_present(d);
    return true;
  }
  if (PyUnicode_Check(o)) {
    d = parse_device(text_of(o));
    return true;
  }
  if (!PyLong_Check(o) || PyBool_Check(o)) return false;
  const long index = PyLong_AsLong(o);
  if (index == -1 && PyErr_Occurred()) PyErr_Clear();
  check(index >= 0 && index < 128, "Device index must not be negative");
  const DeviceType type = accelerator_type();
  check(type != DeviceType::CPU, "facula.accelerator: no accelerator is present");
  d = Device{type, static_cast<int8_t>(index)};
  return true;
}

void add_device(PyObject* module) { add_type(module, device_type, "device"); }

}  // namespace facula::python
