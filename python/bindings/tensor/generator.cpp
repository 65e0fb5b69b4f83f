// Generator, and functions for the default generators.
#include <cstddef>

#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "core/device_generator.h"
#include "core/thread_generator.h"

namespace facula::python {
namespace {

GeneratorObject* self_of(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o); }

Object new_object(PyTypeObject* type, Ref<Generator> g) {
  Object o = Object::take(type->tp_alloc(type, 0));
  g->python_object = o.get();
  self_of(o.get())->generator = g.leak();
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
    check(d.is_cpu() || (d.is_accelerator() && is_registered(d.type)), "Device type ", str(d),
          " is not supported for torch.Generator() api.");
    Generator* made = d.is_cpu() ? new Generator : new DeviceGenerator(d);
    return new_object(type, Ref<Generator>::take(made)).leak();
  });
}

void generator_dealloc(PyObject* o) {
  // Done first, so that callbacks of weak references cannot get this object again.
  auto g = Ref<Generator>::take(self_of(o)->generator);
  if (g && g->python_object == o) g->python_object = nullptr;
  if (self_of(o)->weakrefs) PyObject_ClearWeakRefs(o);
  Py_TYPE(o)->tp_free(o);
}

// Seeds are 64-bit numbers; a negative one is taken modulo 2**64.
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
  const Generator::State s = g.get_state();
  const auto n = static_cast<int64_t>(s.size());
  Tensor t = empty_tensor(IntSpan(&n, 1), DType::UInt8);
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
  return new_object(&generator_type, Ref<Generator>::take(generator_value(o)->clone().release()));
}
PyObject* device_of(PyObject* o, void*) {
  return guard([&] { return device_object(generator_value(o)->device()).leak(); });
}

// Raises if the generator is not one of an accelerator.
DeviceGenerator& device_generator(PyObject* o) {
  Generator* g = generator_value(o);
  check_kind(ErrorKind::NotImplemented, g->device().is_accelerator(),
             "Generator: a generator of the CPU has no offset");
  return static_cast<DeviceGenerator&>(*g);
}
Object get_offset(PyObject* o, PyObject*) {
  return Object::take(PyLong_FromUnsignedLongLong(device_generator(o).offset()));
}
Object set_offset(PyObject* o, PyObject* offset) {
  device_generator(o).set_offset(seed_of(offset));
  return Object::share(o);
}

// States that a captured graph may refer to, which no device of facula's generators has.
[[noreturn]] Object no_graph_state(const char* method) {
  throw_error(ErrorKind::NotImplemented,
              concat("Generator.", method, "(): expected a generator whose state a captured graph ",
                     "can refer to; got one of a device without such (see get_state())"));
}
Object graph_state(PyObject*, PyObject*) { no_graph_state("graphsafe_get_state"); }
Object set_graph_state(PyObject*, PyObject*) { no_graph_state("graphsafe_set_state"); }
Object philox_state(PyObject*, PyObject*) { no_graph_state("philox_state"); }

// __reduce__, in the form of PyTorch's files: class, device, and (seed, offset, state).
Object reduce(PyObject* o, PyObject*) {
  Generator* g = generator_value(o);
  const Object state = get_state(o, nullptr);
  const Object device = device_object(g->device());
  const Object offset = g->device().is_accelerator() ? get_offset(o, nullptr) : none();
  return Object::take(Py_BuildValue("(O(O)(KOO))", Py_TYPE(o), device.get(),
                                    static_cast<unsigned long long>(g->initial_seed()),
                                    offset.get(), state.get()));
}
Object set_pickled(PyObject* o, PyObject* parts) {
  PyObject *seed = nullptr, *offset = nullptr, *state = nullptr;
  check_type(PyTuple_Check(parts), "Generator.__setstate__(): expected a tuple; got ",
             type_name(parts));
  if (!PyArg_ParseTuple(parts, "OOO:__setstate__", &seed, &offset, &state)) throw_python();
  manual_seed(o, seed);
  if (offset != Py_None) set_offset(o, offset);
  load_state(*generator_value(o), state);
  return none();
}

PyMethodDef methods[] = {
    {"manual_seed", guarded<manual_seed>, METH_O,
     "Restarts the stream from a seed; returns the generator."},
    {"seed", guarded<new_seed>, METH_NOARGS,
     "Restarts the stream from a number of the system, and returns it."},
    {"initial_seed", guarded<initial_seed>, METH_NOARGS, "The seed that the stream started from."},
    {"get_state", guarded<get_state>, METH_NOARGS, "The state, as a uint8 tensor."},
    {"set_state", guarded<set_state>, METH_O, "Sets the state to one that get_state gave."},
    {"get_offset", guarded<get_offset>, METH_NOARGS,
     "How far the stream of an accelerator's generator has been used."},
    {"set_offset", guarded<set_offset>, METH_O, "Sets that; a multiple of 4."},
    {"clone_state", guarded<clone_state>, METH_NOARGS, "A generator of its own in the same state."},
    {"graphsafe_get_state", guarded<graph_state>, METH_NOARGS,
     "The state as a Generator that captured graphs may refer to; no device here has one."},
    {"graphsafe_set_state", guarded<set_graph_state>, METH_O, "Sets the state to such a one."},
    {"philox_state", guarded<philox_state>, METH_O,
     "Reserves numbers of the stream for a captured graph; no device here has such a stream."},
    {"__reduce__", guarded<reduce>, METH_NOARGS, nullptr},
    {"__setstate__", guarded<set_pickled>, METH_O, "Sets seed, offset and state."},
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
  auto* known = static_cast<PyObject*>(g->python_object);
  // An object with no references is being deallocated.
  if (known && Py_REFCNT(known) > 0) return Object::share(known);
  return new_object(&generator_type, Ref<Generator>::share(g));
}

namespace {

// _default_generator(device=cpu). Made at its first use, since it reads a seed from the system. The
// object is never freed, so that attributes that users set on it stay.
Object get_default(PyObject*, PyObject* args) {
  PyObject* device = nullptr;
  if (!PyArg_ParseTuple(args, "|O:_default_generator", &device)) throw_python();
  Device d;
  const bool other = device && device_like(device, d) && d.is_accelerator();
  Generator& g = other ? default_generator(d) : default_generator();
  Object o = generator_object(&g);
  if (Py_REFCNT(o.get()) == 1) Py_INCREF(o.get());
  return o;
}

// _set_thread_generator(generator or None): the default one of this thread, which the caller keeps.
Object set_own(PyObject*, PyObject* own) {
  if (own != Py_None && !PyObject_TypeCheck(own, &generator_type))
    throw_type(concat("_set_thread_generator(): expected a Generator; got ", type_name(own)));
  set_thread_generator(own == Py_None ? nullptr : generator_value(own));
  return none();
}

PyMethodDef functions[] = {{"_default_generator", guarded<get_default>, METH_VARARGS, nullptr},
                           {"_set_thread_generator", guarded<set_own>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_generator(PyObject* module) {
  add_type(module, generator_type, "Generator");
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python
