// Dispatch in Python: __torch_dispatch__ of tensor subclasses, modes, and kernels of
// facula.library.
#include "bindings/modes/modes.h"

#include <memory>

#include "autograd/seen_program.h"
#include "bindings/call/callable.h"
#include "bindings/call/convert.h"
#include "bindings/call/handler_results.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/tensor_members.h"
#include "dispatch/modes_watch.h"
#include "transforms/layers.h"

namespace facula::python {
namespace {

// --- the arguments of a call for a Python handler

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

}  // namespace

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

namespace {

Operator& operator_of(const OpCall& c) { return const_cast<Operator&>(*c.op); }

// --- subclasses

void note_subclasses(const Value& v, std::vector<Object>& found) {
  auto look = [&](const Tensor& t) {
    if (!t.defined() || !t->layers.has(Layer::Subclass)) return;
    Object o = wrapped(t);
    size_t at = found.size();
    for (size_t i = 0; i < found.size(); ++i) {
      if (Py_TYPE(found[i].get()) == Py_TYPE(o.get())) return;
      // Subclasses are asked before their bases.
      if (at == found.size() && PyType_IsSubtype(Py_TYPE(o.get()), Py_TYPE(found[i].get()))) at = i;
    }
    found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), std::move(o));
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

// A dict of rules: (OpOverload, class) -> rule(class or mode, func, types, args, kwargs). Null if
// empty.
PyObject* dispatch_rules = nullptr;

PyObject* rule_for(PyObject* holder, const OpCall& c) {
  if (!dispatch_rules) return nullptr;
  const Object key =
      Object::take(PyTuple_Pack(2, overload_object(operator_of(c)), Py_TYPE(holder)));
  return PyDict_GetItemWithError(dispatch_rules, key.get());
}

Object set_rule(PyObject*, PyObject* args) {
  PyObject *overload, *cls, *rule;
  if (!PyArg_ParseTuple(args, "O!O!O:_register_torch_dispatch_rule", &overload_type, &overload,
                        &PyType_Type, &cls, &rule))
    throw_python();
  if (!dispatch_rules) dispatch_rules = checked(PyDict_New());
  const Object key = Object::take(PyTuple_Pack(2, overload, cls));
  if (rule == Py_None)
    checked(PyDict_DelItem(dispatch_rules, key.get()));
  else
    checked(PyDict_SetItem(dispatch_rules, key.get(), rule));
  return none();
}

// holder.__torch_dispatch__(func, types, args, kwargs); empty for NotImplemented.
Object ask(PyObject* holder, const OpCall& c, const Object& types, const PythonArguments& p,
           bool is_mode) {
  if (PyObject* rule = rule_for(holder, c)) {
    PyObject* first = is_mode ? holder : reinterpret_cast<PyObject*>(Py_TYPE(holder));
    PyObject* stack[] = {first, overload_object(operator_of(c)), types.get(), p.args.get(),
                         p.kwargs.get()};
    Object r = Object::take(PyObject_Vectorcall(rule, stack, 5, nullptr));
    return r.get() == Py_NotImplemented ? Object() : r;
  }
  const Object method = attribute(holder, "__torch_dispatch__");
  PyObject* stack[] = {overload_object(operator_of(c)), types.get(), p.args.get(), p.kwargs.get()};
  Object r = Object::take(PyObject_Vectorcall(method.get(), stack, 4, nullptr));
  return r.get() == Py_NotImplemented ? Object() : r;
}

// The layers above dispatch modes, which are excluded while Python code handles the call. Those of
// conjugate and negative bits stay: a kernel that consists of other operators makes such tensors.
LayerSet above_dispatch() {
  return LayerSet(Layer::Autograd) | Layer::Autocast | Layer::PreAutogradTrace;
}

[[noreturn]] void nobody_took(const OpCall& c, const Object& types) {
  throw_type(concat("Multiple dispatch failed for '", c.op->name(),
                    "'; all __torch_dispatch__ handlers returned NotImplemented: ",
                    text_of(Object::take(PyObject_Repr(types.get())).get())));
}

// --- modes

struct PythonMode final : DispatchMode {
  explicit PythonMode(PyObject* m, bool above = false)
      : mode(Py_NewRef(m)), above_autograd(above) {}
  ~PythonMode() override { Py_DECREF(mode); }
  void handle(OpCall& c) override {
    HoldGil gil;
    const PythonArguments p = arguments_of(c);
    std::vector<Object> subclasses;
    for (int i = 0; i < c.info->args; ++i) note_subclasses(c.args[i], subclasses);
    const Object types = types_of(subclasses);
    // What a mode above autograd calls is differentiated as ever.
    const ExcludeLayers below(above_autograd ? LayerSet() : above_dispatch());
    const Object r = ask(mode, c, types, p, true);
    if (!r) nobody_took(c, types);
    store_results(c, r.get());
  }
  PyObject* mode;
  bool above_autograd;
};

bool python_mode_is_on() {
  if (thread_state.pre_autograd_modes) return true;
  for (const DispatchMode* m = thread_state.modes; m; m = m->below)
    if (dynamic_cast<const PythonMode*>(m)) return true;
  return false;
}

Object push(PyObject*, PyObject* mode) {
  program_is_seen = &python_mode_is_on;
  push_mode(new PythonMode(mode));
  return none();
}
Object pop(PyObject*, PyObject*) {
  check(dynamic_cast<PythonMode*>(thread_state.modes) != nullptr,
        "the innermost dispatch mode is not one of Python's");
  const std::unique_ptr<PythonMode> m(static_cast<PythonMode*>(pop_mode()));
  return Object::share(m->mode);
}
// The same for the stack above autograd, whose modes see composite operators whole.
Object push_above_autograd(PyObject*, PyObject* mode) {
  program_is_seen = &python_mode_is_on;
  push_pre_autograd_mode(new PythonMode(mode, true));
  return none();
}
Object pop_above_autograd(PyObject*, PyObject*) {
  check(dynamic_cast<PythonMode*>(thread_state.pre_autograd_modes) != nullptr,
        "the innermost dispatch mode above autograd is not one of Python's");
  const std::unique_ptr<PythonMode> m(static_cast<PythonMode*>(pop_pre_autograd_mode()));
  return Object::share(m->mode);
}
Object depth(PyObject*, PyObject*) {
  int64_t n = 0;
  for (DispatchMode* m = thread_state.modes; m; m = m->below) n += m != recorder_of_thread;
  return integer(n);
}

// _exclude_autograd() -> the bits of the excluded layers before
Object exclude_autograd(PyObject*, PyObject*) {
  const uint32_t before = thread_state.exclude.bits();
  thread_state.exclude |= Layer::Autograd;
  return integer(before);
}
// _set_excluded_layers(bits) -> the bits before
Object set_excluded(PyObject*, PyObject* bits) {
  const unsigned long wanted = PyLong_AsUnsignedLong(bits);
  if (PyErr_Occurred()) throw_python();
  const uint32_t before = thread_state.exclude.bits();
  thread_state.exclude = LayerSet(static_cast<uint32_t>(wanted));
  return integer(before);
}
Object mode_at(PyObject*, PyObject* number) {
  int64_t i = PyLong_AsLongLong(number);
  if (i == -1 && PyErr_Occurred()) throw_python();
  std::vector<DispatchMode*> stack;
  for (DispatchMode* m = thread_state.modes; m; m = m->below)
    if (m != recorder_of_thread) stack.push_back(m);
  check_index(i >= 0 && i < static_cast<int64_t>(stack.size()), "there is no dispatch mode ", i);
  auto* m = dynamic_cast<PythonMode*>(stack[stack.size() - 1 - static_cast<size_t>(i)]);
  return m ? Object::share(m->mode) : none();
}

PyMethodDef functions[] = {
    {"_exclude_autograd", guarded<exclude_autograd>, METH_NOARGS, nullptr},
    {"_set_excluded_layers", guarded<set_excluded>, METH_O, nullptr},
    {"_dispatch_mode_at", guarded<mode_at>, METH_O, nullptr},
    {"_register_torch_dispatch_rule", guarded<set_rule>, METH_VARARGS, nullptr},
    {"_push_dispatch_mode", guarded<push>, METH_O, nullptr},
    {"_pop_dispatch_mode", guarded<pop>, METH_NOARGS, nullptr},
    {"_push_dispatch_mode_above_autograd", guarded<push_above_autograd>, METH_O, nullptr},
    {"_pop_dispatch_mode_above_autograd", guarded<pop_above_autograd>, METH_NOARGS, nullptr},
    {"_dispatch_mode_depth", guarded<depth>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

namespace {

// Wrappers that a class returns from a view have storages of their own, without memory. They become
// views of the wrapper that they were taken from, so that writing to one counts for both.
void note_views_of_wrappers(OpCall& c) {
  auto adopt = [](const Tensor& view, const Tensor& of) {
    if (!view.defined() || view.is_same(of) || !view->layers.has(Layer::Subclass)) return;
    if (view->storage->device().type != DeviceType::Meta || is_view(view)) return;
    if (of->layers.has(Layer::Subclass) && of->storage->device().type == DeviceType::Meta)
      view->storage = of->storage;
  };
  for (int k = 0; k < c.info->results; ++k) {
    const int from = c.info->alias_of[k];
    if (from < 0 || (c.info->mutated >> from & 1) || !c.args[from].is_tensor()) continue;
    if (c.results[k].is_tensor()) adopt(c.results[k].as_tensor(), c.tensor(from));
    if (c.results[k].tag != Tag::TensorList) continue;
    for (const Tensor& t : c.results[k].as_tensors()) adopt(t, c.tensor(from));
  }
  note_views(c);
}

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
    const Object r = ask(o.get(), c, types, p, false);
    if (!r) continue;
    store_results(c, r.get());
    if (c.info->view) note_views_of_wrappers(c);
    return;
  }
  nobody_took(c, types);
}

// Runs a kernel or rule that was registered from Python; the context is the callable.
void call_python_kernel(void* context, OpCall& c) {
  HoldGil gil;
  const PythonArguments p = arguments_of(c);
  const Object r =
      Object::take(PyObject_Call(static_cast<PyObject*>(context), p.args.get(), p.kwargs.get()));
  store_results(c, r.get());
}

void add_modes(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
