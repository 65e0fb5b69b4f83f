// Dispatch in Python: __torch_dispatch__ of tensor subclasses, modes, and kernels of
// facula.library.
#include "modes.h"

#include <memory>

#include "callable.h"
#include "convert.h"
#include "overrides.h"
#include "tensor_members.h"

namespace facula::python {
namespace {

// --- a call as Python sees it: positional arguments, and keywords that differ from their defaults

bool same_value(const Value& a, const Value& b) {
  if (a.tag != b.tag) return false;
  switch (a.tag) {
    case Tag::None:
      return true;
    case Tag::Bool:
      return a.b == b.b;
    case Tag::Int:
      return a.i == b.i;
    case Tag::Float:
      return a.d == b.d;
    case Tag::DType:
      return a.dtype == b.dtype;
    case Tag::Str:
      return a.as_str() == b.as_str();
    case Tag::MemoryFormat:
      return a.memory_format == b.memory_format;
    case Tag::IntList:
      return same_sizes(a.as_ints(), b.as_ints());
    default:
      return false;
  }
}

struct PythonArguments {
  Object args, kwargs;
};

PythonArguments arguments_of(const OpCall& c) {
  const std::vector<Argument>& list = c.info->schema.args;
  size_t positional = 0;
  while (positional < list.size() && !list[positional].keyword_only) ++positional;
  size_t given = positional;
  while (given > 0 && list[given - 1].has_default &&
         same_value(c.args[given - 1], default_value(list[given - 1])))
    --given;
  PythonArguments p{Object::take(PyTuple_New(static_cast<Py_ssize_t>(given))),
                    Object::take(PyDict_New())};
  for (size_t i = 0; i < given; ++i)
    PyTuple_SET_ITEM(p.args.get(), static_cast<Py_ssize_t>(i), value_object(c.args[i]).leak());
  for (size_t i = positional; i < list.size(); ++i) {
    if (list[i].has_default && same_value(c.args[i], default_value(list[i]))) continue;
    checked(
        PyDict_SetItemString(p.kwargs.get(), list[i].name.c_str(), value_object(c.args[i]).get()));
  }
  return p;
}

Operator& operator_of(const OpCall& c) { return const_cast<Operator&>(*c.op); }

// --- subclasses

void note_subclasses(const Value& v, std::vector<Object>& found) {
  auto look = [&](const Tensor& t) {
    if (!t.defined() || !t->layers.has(Layer::Subclass)) return;
    Object o = wrapped(t);
    for (const Object& other : found)
      if (Py_TYPE(other.get()) == Py_TYPE(o.get())) return;
    found.push_back(std::move(o));
  };
  if (v.is_tensor()) look(v.as_tensor());
  if (v.tag == Tag::TensorList)
    for (const Tensor& t : v.as_tensors()) look(t);
}

Object types_of(const std::vector<Object>& objects) {
  Object types = Object::take(PyTuple_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; i < objects.size(); ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects[i].get()))));
  return types;
}

// holder.__torch_dispatch__(func, types, args, kwargs); empty for NotImplemented.
Object ask(PyObject* holder, const OpCall& c, const Object& types, const PythonArguments& p) {
  const Object method = attribute(holder, "__torch_dispatch__");
  PyObject* stack[] = {overload_object(operator_of(c)), types.get(), p.args.get(), p.kwargs.get()};
  Object r = Object::take(PyObject_Vectorcall(method.get(), stack, 4, nullptr));
  return r.get() == Py_NotImplemented ? Object() : r;
}

// The layers above have had the call: Python sees it below autograd.
LayerSet above_dispatch() {
  return LayerSet(Layer::Autograd) | Layer::Autocast | Layer::Conjugate | Layer::Negative |
         Layer::PreAutogradTrace;
}

[[noreturn]] void nobody_took(const OpCall& c, const Object& types) {
  throw_type(concat("Multiple dispatch failed for '", c.op->name(),
                    "'; all __torch_dispatch__ handlers returned NotImplemented: ",
                    text_of(Object::take(PyObject_Repr(types.get())).get())));
}

// --- modes

struct PythonMode final : DispatchMode {
  explicit PythonMode(PyObject* m) : mode(Py_NewRef(m)) {}
  ~PythonMode() override { Py_DECREF(mode); }
  void handle(OpCall& c) override {
    HoldGil gil;
    const PythonArguments p = arguments_of(c);
    std::vector<Object> subclasses;
    for (int i = 0; i < c.info->args; ++i) note_subclasses(c.args[i], subclasses);
    const Object types = types_of(subclasses);
    const ExcludeLayers below(above_dispatch());
    const Object r = ask(mode, c, types, p);
    if (!r) nobody_took(c, types);
    Arena arena;
    store_results(*c.info, r.get(), c.results, arena);
  }
  PyObject* mode;
};

Object push(PyObject*, PyObject* mode) {
  push_mode(new PythonMode(mode));
  return none();
}
Object pop(PyObject*, PyObject*) {
  check(dynamic_cast<PythonMode*>(thread_state.modes) != nullptr,
        "the innermost dispatch mode is not one of Python's");
  const std::unique_ptr<PythonMode> m(static_cast<PythonMode*>(pop_mode()));
  return Object::share(m->mode);
}
Object depth(PyObject*, PyObject*) {
  int64_t n = 0;
  for (DispatchMode* m = thread_state.modes; m; m = m->below) ++n;
  return integer(n);
}

PyMethodDef functions[] = {{"_push_dispatch_mode", guarded<push>, METH_O, nullptr},
                           {"_pop_dispatch_mode", guarded<pop>, METH_NOARGS, nullptr},
                           {"_dispatch_mode_depth", guarded<depth>, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void handle_subclass(OpCall& c) {
  HoldGil gil;
  std::vector<Object> subclasses;
  for (int i = 0; i < c.info->args; ++i) note_subclasses(c.args[i], subclasses);
  if (subclasses.empty()) return redispatch(c, Layer::Subclass);
  const Object types = types_of(subclasses);
  const PythonArguments p = arguments_of(c);
  const ExcludeLayers below(above_dispatch());
  for (const Object& o : subclasses) {
    const Object r = ask(o.get(), c, types, p);
    if (!r) continue;
    Arena arena;
    return store_results(*c.info, r.get(), c.results, arena);
  }
  nobody_took(c, types);
}

// A kernel or rule registered from Python: the context is the callable.
void call_python_kernel(void* context, OpCall& c) {
  HoldGil gil;
  const PythonArguments p = arguments_of(c);
  const Object r =
      Object::take(PyObject_Call(static_cast<PyObject*>(context), p.args.get(), p.kwargs.get()));
  Arena arena;
  store_results(*c.info, r.get(), c.results, arena);
}

void add_modes(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
