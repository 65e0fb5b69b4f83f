#include "bindings/call/convert.h"

#include <structmember.h>
#include <structseq.h>

#include <map>

#include "autograd/variable.h"
#include "bindings/call/containers.h"
#include "bindings/call/operators.h"
#include "bindings/module/package.h"
#include "bindings/tensor/types.h"
#include "core/named_devices.h"
#include "core/pending.h"

namespace facula::python {
namespace {

// numpy.generic; null if NumPy is not loaded, and so no such object exists.
PyTypeObject* numpy_generic() {
  static PyTypeObject* found = nullptr;
  if (found) return found;
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* numpy = modules ? PyDict_GetItemString(modules, "numpy") : nullptr;
  PyObject* generic = numpy ? PyObject_GetAttrString(numpy, "generic") : nullptr;
  if (!generic) PyErr_Clear();
  return found = reinterpret_cast<PyTypeObject*>(generic);
}

bool has_name(PyObject* o, const char* prefix) {
  return std::strncmp(type_name(o), prefix, std::strlen(prefix)) == 0;
}
bool is_numpy_bool(PyObject* o) { return has_name(o, "numpy.bool") && is_numpy_scalar(o); }

// Whether it has one of Python's basic types. Faster than looking for NumPy's among the type's
// bases.
bool is_basic(PyObject* o) {
  return PyUnicode_Check(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o) || o == Py_None;
}

int64_t int64_of(PyObject* o) {
  int overflow = 0;
  const int64_t v = long_value(o, overflow);
  check_value(!overflow, "Overflow when unpacking long long");
  if (v == -1 && PyErr_Occurred()) throw_python();
  return v;
}

void put_complex(complex128 v, Value& out, Arena& arena) {
  complex128* kept = arena.room<complex128>(1);
  *kept = v;
  out = Value();
  out.tag = Tag::Complex;
  out.complex = kept;
}

void put_scalar(const Scalar& s, Value& out, Arena& arena) {
  if (s.is_complex()) return put_complex(s.to<complex128>(), out, arena);
  if (s.is_bool())
    out = Value::of_bool(s.to<bool>());
  else if (s.is_integral())
    out = Value::of_int(s.to<int64_t>());
  else
    out = Value::of_float(s.to<double>());
}

// Converts an int for a Scalar argument; beyond int64, up to the range of uint64, it becomes a
// float.
void put_long(PyObject* o, Value& out) {
  int overflow = 0;
  const int64_t v = long_value(o, overflow);
  if (v == -1 && !overflow && PyErr_Occurred()) throw_python();
  if (!overflow) {
    out = Value::of_int(v);
    return;
  }
  const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
  const bool fits = overflow > 0 && !PyErr_Occurred();
  PyErr_Clear();
  check_kind(ErrorKind::Overflow, fits, "int too big to convert");
  out = Value::of_float(static_cast<double>(u));
}

bool is_plain_scalar_tensor(PyObject* o) {
  if (!is_tensor(o)) return false;
  const Tensor& t = tensor_of(o);
  return t.dim() == 0 && !requires_grad(t);
}

void read_numpy_number(PyObject* o, Value& out, Arena& arena) {
  if (is_numpy_bool(o)) {
    out = Value::of_bool(PyObject_IsTrue(o) == 1);
    return;
  }
  if (PyIndex_Check(o)) return put_long(Object::take(PyNumber_Index(o)).get(), out);
  if (has_name(o, "numpy.complex")) {
    const Py_complex c = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw_python();
    return put_complex({c.real, c.imag}, out, arena);
  }
  out = Value::of_float(PyFloat_AsDouble(o));
  if (PyErr_Occurred()) throw_python();
}

bool is_numpy_number(PyObject* o) {
  return is_numpy_scalar(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) &&
         (is_numpy_bool(o) || PyIndex_Check(o) ||
          (Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_float));
}

// A size while a program is traced: the trace knows it again by the number that stands for it.
bool is_symbolic_int(PyObject* o) {
  if (is_basic(o) || is_tensor(o) || !PyIndex_Check(o)) return false;
  static PyObject* const symbolic = imported("facula._symbolic", "SymInt").leak();
  return PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(symbolic));
}

}  // namespace

bool is_numpy_scalar(PyObject* o) {
  if (is_basic(o)) return false;
  PyTypeObject* generic = numpy_generic();
  return generic && PyObject_TypeCheck(o, generic);
}

bool is_number(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || is_numpy_number(o);
}

bool read_number(PyObject* o, Value& out, Arena& arena) {
  if (PyFloat_Check(o)) {
    out = Value::of_float(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyBool_Check(o)) {
    out = Value::of_bool(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    put_long(o, out);
    return true;
  }
  if (PyComplex_Check(o)) {
    const Py_complex c = PyComplex_AsCComplex(o);
    put_complex({c.real, c.imag}, out, arena);
    return true;
  }
  if (is_symbolic_int(o)) {
    put_long(Object::take(PyNumber_Index(o)).get(), out);
    return true;
  }
  if (!is_numpy_number(o)) return false;
  read_numpy_number(o, out, arena);
  return true;
}

bool read_scalar(PyObject* o, Value& out, Arena& arena) {
  if (read_number(o, out, arena)) return true;
  if (!is_plain_scalar_tensor(o)) return false;
  put_scalar(item_of(tensor_of(o)), out, arena);
  return true;
}

bool read_int(PyObject* o, int64_t& out) {
  if (PyBool_Check(o)) return false;
  if (PyLong_Check(o)) {
    out = int64_of(o);
    return true;
  }
  if (is_tensor(o)) {
    if (!is_plain_scalar_tensor(o) || !is_integral(tensor_of(o).dtype(), false)) return false;
    out = item_of(tensor_of(o)).to<int64_t>();
    return true;
  }
  if (!PyIndex_Check(o) || is_numpy_bool(o)) return false;
  PyObject* number = PyNumber_Index(o);
  if (!number) {
    PyErr_Clear();
    return false;
  }
  out = int64_of(Object::take(number).get());
  return true;
}

bool read_float(PyObject* o, double& out) {
  if (PyFloat_Check(o)) {
    out = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (PyLong_Check(o)) {
    out = PyLong_AsDouble(o);
    if (out == -1.0 && PyErr_Occurred()) throw_python();
    return true;
  }
  if (is_plain_scalar_tensor(o)) {
    out = item_of(tensor_of(o)).checked_to<double>("double");
    return true;
  }
  if (!is_numpy_number(o) || has_name(o, "numpy.complex")) return false;
  out = PyFloat_AsDouble(o);
  if (PyErr_Occurred()) throw_python();
  return true;
}

bool read_bool(PyObject* o, bool& out) {
  if (PyBool_Check(o)) {
    out = o == Py_True;
    return true;
  }
  if (is_plain_scalar_tensor(o) && tensor_of(o).dtype() == DType::Bool) {
    out = item_of(tensor_of(o)).to<bool>();
    return true;
  }
  if (PyLong_Check(o) || !is_numpy_bool(o)) return false;
  out = PyObject_IsTrue(o) == 1;
  return true;
}

bool strict_bool(PyObject* o, const char* function) {
  check_type(PyBool_Check(o), function, "(): argument 'enabled' (position 1) must be bool, not ",
             type_name(o));
  return o == Py_True;
}

// --- elements

Scalar element_at(const Tensor& t, const void* p) {
  Scalar s = read_element(t.dtype(), p);
  if (t->conj) s = s.conj();
  return t->neg ? -s : s;
}

Scalar item_of(const Tensor& t) {
  check(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  finish_pending_work();
  if (needs_operator(t)) return item_by_operator(t);
  check(!t.is_meta(), "Tensor.item() cannot be called on meta tensors");
  if (!t.device().is_cpu()) {
    static NamedOperator to_copy("_to_copy");
    const Tensor host = to_copy.tensor({pack(t), Value(), Value(), pack(Device{})});
    return element_at(host, host.data());
  }
  return element_at(t, t.data());
}

Object number_object(const Scalar& s) {
  if (s.is_bool()) return boolean(s.to<bool>());
  if (s.is_integral()) return integer(s.to<int64_t>());
  if (s.is_floating()) return Object::take(PyFloat_FromDouble(s.to<double>()));
  const complex128 c = s.to<complex128>();
  return Object::take(PyComplex_FromDoubles(c.re, c.im));
}

// --- results

namespace {

template <class F>
Object tuple_of(size_t n, F&& item) {
  Object t = Object::take(PyTuple_New(static_cast<Py_ssize_t>(n)));
  SignalPoll poll;
  for (size_t i = 0; i < n; ++i, poll.step())
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), item(i).leak());
  return t;
}
template <class F>
Object list_of(size_t n, F&& item) {
  Object t = Object::take(PyList_New(static_cast<Py_ssize_t>(n)));
  SignalPoll poll;
  for (size_t i = 0; i < n; ++i, poll.step())
    PyList_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), item(i).leak());
  return t;
}

bool all_named(const Schema& s) {
  for (const Argument& r : s.results)
    if (r.name.empty()) return false;
  return true;
}

Object object_or_none(void* p) { return p ? Object::share(static_cast<PyObject*>(p)) : none(); }

}  // namespace

Object value_object(const Value& v) {
  switch (v.tag) {
    case Tag::None:
      return none();
    case Tag::Tensor:
      return wrapped(v.as_tensor());
    case Tag::Int:
      return integer(v.i);
    case Tag::Float:
      return Object::take(PyFloat_FromDouble(v.d));
    case Tag::Bool:
      return boolean(v.b);
    case Tag::Complex:
      return Object::take(PyComplex_FromDoubles(v.complex->re, v.complex->im));
    case Tag::Str:
      return string(v.as_str());
    case Tag::DType:
      return Object::share(dtype_object(v.dtype));
    case Tag::Layout:
      return Object::share(layout_object(v.layout));
    case Tag::MemoryFormat:
      return Object::share(memory_format_object(v.memory_format));
    case Tag::Device:
      return device_object(v.device);
    case Tag::Generator:
      return generator_object(v.generator);
    case Tag::Storage:
      return storage_object(Ref<Storage>::share(v.storage));
    case Tag::IntList:
      return list_of(v.length, [&](size_t i) { return integer(v.ints[i]); });
    case Tag::FloatList:
      return list_of(v.length,
                     [&](size_t i) { return Object::take(PyFloat_FromDouble(v.doubles[i])); });
    case Tag::BoolList:
      return list_of(v.length, [&](size_t i) { return boolean(v.bools[i]); });
    case Tag::TensorList:
      return list_of(v.length, [&](size_t i) { return wrapped(v.tensors[i]); });
    case Tag::ValueList:
      return list_of(v.length, [&](size_t i) { return value_object(v.values[i]); });
    case Tag::Object:
      return object_or_none(v.object);
    case Tag::Tuple:
    case Tag::Dict:
      return container_object(v);
  }
  return none();
}

Object result_object(Value& v) {
  if (v.tag == Tag::Tensor) return wrapped(take_tensor(v));
  if (v.tag == Tag::TensorList)
    return tuple_of(v.length, [&](size_t i) { return wrapped(v.tensors[i]); });
  return value_object(v);
}

Object results_object(const OpInfo& info, Value* results, bool plain) {
  if (info.results == 1) return plain ? value_object(results[0]) : result_object(results[0]);
  if (info.results == 0) return none();
  if (plain || !all_named(info.schema))
    return tuple_of(info.results, [&](size_t i) { return result_object(results[i]); });
  Object made = Object::take(PyStructSequence_New(return_type(info)));
  for (int i = 0; i < info.results; ++i)
    PyStructSequence_SetItem(made.get(), i, result_object(results[i]).leak());
  return made;
}

namespace {

// The name of the tuple type of an operator's results.
std::string return_name(const OpInfo& info) {
  const bool out = info.base_args < info.args;
  return out ? info.schema.name + "_out" : info.schema.name;
}

// __reduce__: made again from a sequence of the fields.
PyObject* reduce_results(PyObject* o, PyObject*) {
  return guard([&] {
    const Object fields = Object::take(PySequence_Tuple(o));
    return Object::take(Py_BuildValue("(O(O))", Py_TYPE(o), fields.get())).leak();
  });
}
PyMethodDef reduce_method = {"__reduce__", reduce_results, METH_NOARGS, nullptr};

// Each field begins a line, as tensors may take several.
PyObject* results_repr(PyObject* o) {
  return guard([&] {
    std::string text = std::string(Py_TYPE(o)->tp_name) + "(";
    const auto* fields = Py_TYPE(o)->tp_members;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      const Object shown = Object::take(PyObject_Repr(PyTuple_GET_ITEM(o, i)));
      text += concat(i ? ",\n" : "\n", fields[i].name, "=", text_of(shown.get()));
    }
    return string(text + ")").leak();
  });
}
PyObject* results_repr_method(PyObject* o, PyObject*) { return results_repr(o); }
PyMethodDef repr_method = {"__repr__", results_repr_method, METH_NOARGS, nullptr};

}  // namespace

PyTypeObject* named_return_type(std::string_view name) {
  for (const OperatorEntry& e : builtin_operators()) {
    if (!name.starts_with(e.name)) continue;  // avoids parsing the schemas of all others
    const OpInfo& info = e.op->info();
    if (info.results > 1 && all_named(info.schema) && return_name(info) == name)
      return return_type(info);
  }
  return nullptr;
}

PyTypeObject* return_type(const OpInfo& info) {
  static auto* types = new std::map<std::string, PyTypeObject*>;
  const Schema& s = info.schema;
  const std::string key = return_name(info);
  std::string signature = key;
  for (const Argument& r : s.results) signature += "," + r.name;
  PyTypeObject*& type = (*types)[signature];
  if (type) return type;
  auto* fields = new std::vector<PyStructSequence_Field>;  // the type points into these
  for (const Argument& r : s.results) fields->push_back({(new std::string(r.name))->c_str(), ""});
  fields->push_back({nullptr, nullptr});
  PyStructSequence_Desc desc = {};
  desc.name = (new std::string(in_package("return_types." + key)))->c_str();
  desc.fields = fields->data();
  desc.n_in_sequence = static_cast<int>(s.results.size());
  type = PyStructSequence_NewType(&desc);
  if (!type) throw_python();
  type->tp_repr = results_repr;
  for (PyMethodDef* m : {&reduce_method, &repr_method}) {
    const Object made = Object::take(PyDescr_NewMethod(type, m));
    checked(PyDict_SetItemString(type->tp_dict, m->ml_name, made.get()));
  }
  PyType_Modified(type);
  return type;
}

// --- from objects of any kind

namespace {

Value sequence_value(PyObject* o, Arena& arena) {
  // Copies a list, since reading an item may run Python code that changes it.
  const Object fast = Object::take(PySequence_Tuple(o));
  const size_t n = static_cast<size_t>(PyTuple_GET_SIZE(fast.get()));
  PyObject** items = PySequence_Fast_ITEMS(fast.get());
  bool tensors = n > 0, ints = true;
  for (size_t i = 0; i < n; ++i) {
    tensors = tensors && (items[i] == Py_None || is_tensor(items[i]));
    ints = ints && PyLong_Check(items[i]) && !PyBool_Check(items[i]);
  }
  if (tensors) {
    Tensor* list = arena.tensors(n);
    for (size_t i = 0; i < n; ++i)
      if (items[i] != Py_None) list[i] = tensor_of(items[i]);
    return pack(std::span<const Tensor>(list, n));
  }
  if (ints) {
    int64_t* list = arena.room<int64_t>(n);
    for (size_t i = 0; i < n; ++i) list[i] = int64_of(items[i]);
    return pack(IntSpan(list, n));
  }
  Value* list = arena.room<Value>(n);
  for (size_t i = 0; i < n; ++i) list[i] = object_value(items[i], arena);
  return pack(std::span<const Value>(list, n));
}

}  // namespace

Value object_value(PyObject* o, Arena& arena) {
  Value v;
  if (o == Py_None) return v;
  if (is_tensor(o)) return pack(tensor_of(o));
  if (read_number(o, v, arena)) return v;
  if (PyUnicode_Check(o)) return pack(text_of(o));
  if (is_dtype(o)) return pack(dtype_value(o));
  if (is_layout(o)) return pack(layout_value(o));
  if (is_memory_format(o)) return pack(memory_format_value(o));
  if (is_device(o)) {
    const Device device = reinterpret_cast<DeviceObject*>(o)->device;
    check_present(device);
    return pack(device);
  }
  if (is_generator(o)) return pack(generator_value(o));
  if (is_storage(o)) return pack(storage_value(o));
  if (PyList_Check(o) || PyTuple_Check(o)) return sequence_value(o, arena);
  v.tag = Tag::Object;
  v.object = o;
  return v;
}

}  // namespace facula::python
