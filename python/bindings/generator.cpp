// Generator: a stream of random numbers, and the functions of the default one.
#include <cstddef>

#include "tensor_members.h"
#include "types.h"

namespace facula::python {
namespace {

PyObject* default_object = nullptr;

GeneratorObject* self_of(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o); }

Object new_object(PyTypeObject* type, Generator* g, bool owned) {
  Object o = Object::take(type->tp_alloc(type, 0));
  self_of(o.get())->generator = g;
  self_of(o.get())->owned = owned;
  return o;
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* keys[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(keys),
                                     &device))
      return nullptr;
    Device d;
    if (device && !device_like(device, d))
      throw_type(
          concat("Generator(): argument 'device' must be torch.device, not ", type_name(device)));
    check(d.is_cpu(), "Device type ", str(d), " is not supported for torch.Generator() api.");
    return new_object(type, new Generator, true).leak();
  });
}

void generator_dealloc(PyObject* o) {
  if (self_of(o)->weakrefs) PyObject_ClearWeakRefs(o);
  if (self_of(o)->owned) delete self_of(o)->generator;
  Py_TYPE(o)->tp_free(o);
}

// Seeds are 64 bits: a negative one counts from 2**64 down.
uint64_t seed_of(PyObject* o) {
  check(PyLong_Check(o) || PyIndex_Check(o), "manual_seed(): seed must be an integer; got ",
        type_name(o));
  const Object number = Object::take(PyNumber_Index(o));
  const Object zero = integer(0);
  const int negative = PyObject_RichCompareBool(number.get(), zero.get(), Py_LT);
  const uint64_t seed = negative ? static_cast<uint64_t>(PyLong_AsLongLong(number.get()))
                                 : PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    check_kind(ErrorKind::Runtime, false, "Overflow when unpacking long long");
  }
  return seed;
}

Tensor state_tensor(const Generator& g) {
  const int64_t n = Generator::state_bytes;
  Tensor t = empty_tensor(IntSpan(&n, 1), DType::UInt8);
  const Generator::State s = g.get_state();
  std::memcpy(t.data(), s.data(), s.size());
  return t;
}
void load_state(Generator& g, PyObject* o) {
  check_type(is_tensor(o), "expected a torch.ByteTensor, but got ", type_name(o));
  const Tensor& t = tensor_of(o);
  check_type(t.dtype() == DType::UInt8 && t.device().is_cpu() && t.is_contiguous(),
             "expected a torch.ByteTensor on the CPU, but got a tensor of ", name(t.dtype()));
  g.set_state({static_cast<const uint8_t*>(t.data()), static_cast<size_t>(t.numel())});
}

Object manual_seed(PyObject* o, PyObject* seed) {
  generator_value(o)->manual_seed(seed_of(seed));
  return Object::share(o);
}
Object new_seed(PyObject* o, PyObject*) {
  return Object::take(PyLong_FromUnsignedLongLong(generator_value(o)->seed()));
}
Object initial_seed(PyObject* o, PyObject*) {
  return Object::take(PyLong_FromUnsignedLongLong(generator_value(o)->initial_seed()));
}
Object get_state(PyObject* o, PyObject*) { return wrapped(state_tensor(*generator_value(o))); }
Object set_state(PyObject* o, PyObject* state) {
  load_state(*generator_value(o), state);
  return Object::share(o);
}
Object clone_state(PyObject* o, PyObject*) {
  return new_object(&generator_type, generator_value(o)->clone().release(), true);
}
Object reduce(PyObject* o, PyObject*) {
  const Object rebuild = imported("facula._methods", "rebuild_generator");
  const Object state = get_state(o, nullptr);
  return Object::take(Py_BuildValue("(O(O))", rebuild.get(), state.get()));
}
PyObject* device_of(PyObject*, void*) {
  return guard([] { return device_object(Device{}).leak(); });
}

PyMethodDef methods[] = {
    {"manual_seed", guarded<manual_seed>, METH_O,
     "Restarts the stream from a seed; returns the generator."},
    {"seed", guarded<new_seed>, METH_NOARGS,
     "Restarts the stream from a number of the system, and returns it."},
    {"initial_seed", guarded<initial_seed>, METH_NOARGS, "The seed that the stream started from."},
    {"get_state", guarded<get_state>, METH_NOARGS, "The state, as a uint8 tensor."},
    {"set_state", guarded<set_state>, METH_O, "Sets the state to one that get_state gave."},
    {"clone_state", guarded<clone_state>, METH_NOARGS, "A generator of its own in the same state."},
    {"__reduce__", guarded<reduce>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"device", device_of, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula.Generator";
  t.tp_basicsize = sizeof(GeneratorObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_new = generator_new;
  t.tp_dealloc = generator_dealloc;
  t.tp_weaklistoffset = offsetof(GeneratorObject, weakrefs);
  t.tp_methods = methods;
  t.tp_getset = properties;
  t.tp_doc = "A stream of random numbers: Generator(device='cpu').";
  return t;
}

}  // namespace

PyTypeObject generator_type = make_type();

Object generator_object(Generator* g) {
  if (!g) return none();
  if (g == &default_generator()) {
    if (!default_object) default_object = new_object(&generator_type, g, false).leak();
    return Object::share(default_object);
  }
  return new_object(&generator_type, g, false);
}

namespace {

// The default generator is made when first asked for, since it asks the system for a seed.
Object get_default(PyObject*, PyObject*) { return generator_object(&default_generator()); }

PyMethodDef functions[] = {{"_default_generator", guarded<get_default>, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_generator(PyObject* module) {
  add_type(module, generator_type, "Generator");
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python
