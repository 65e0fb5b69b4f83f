// facula.library: defines operators and registers kernels from Python.
#include <deque>
#include <map>
#include <optional>

#include "bindings/call/callable.h"
#include "bindings/call/convert.h"
#include "bindings/call/handler_results.h"
#include "bindings/modes/modes.h"
#include "bindings/tensor/tensor_members.h"
#include "transforms/interpreters.h"
#include "transforms/layers.h"
#include "transforms/replaced_args.h"

namespace facula::python {
namespace {

struct Kept {
  Registration registration;  // null after it was removed
  PyObject* function;         // never released, since a call may be running it
  bool implicit = false;      // CompositeImplicitAutograd
};
std::deque<Kept>& kept() {
  static auto* k = new std::deque<Kept>;
  return *k;
}

Object define(PyObject*, PyObject* schema) {
  return Object::share(overload_object(define_operator(text_of(schema))));
}
Object undefine(PyObject*, PyObject* overload) {
  check_type(Py_TYPE(overload) == &overload_type, "expected an OpOverload; got ",
             type_name(overload));
  undefine_operator(const_cast<Operator&>(*packet_of(overload).only));
  return none();
}

bool single_layer_of(std::string_view key, Layer& layer) {
  static const std::map<std::string_view, Layer> layers = {{"CPU", Layer::CPU},
                                                           {"CUDA", Layer::CUDA},
                                                           {"Meta", Layer::Meta},
                                                           {"PrivateUse1", Layer::Plugin},
                                                           {"Autograd", Layer::Autograd},
                                                           {"Autocast", Layer::Autocast},
                                                           {"Conjugate", Layer::Conjugate},
                                                           {"Negative", Layer::Negative},
                                                           {"Python", Layer::Subclass},
                                                           {"FuncTorchBatched", Layer::Transforms}};
  const auto it = layers.find(key);
  if (it == layers.end()) return false;
  layer = it->second;
  return true;
}

// The meaning of a dispatch key: a layer, and for keys like AutogradCPU also a backend.
struct Place {
  Layer layer = Layer::CPU;
  std::optional<Layer> backend;
};

bool place_of(std::string_view key, Place& place) {
  for (const std::string_view prefix : {"Autograd", "Autocast"}) {
    if (!key.starts_with(prefix) || key == prefix) continue;
    Layer backend;
    if (!single_layer_of(key.substr(prefix.size()), backend) || backend >= Layer::Subclass)
      return false;
    place.backend = backend;
    return single_layer_of(prefix, place.layer);
  }
  return single_layer_of(key, place.layer);
}

bool layer_of(std::string_view key, Layer& layer) {
  Place place;
  if (!place_of(key, place)) return false;
  layer = place.layer;
  return true;
}

Registration put_at(Operator& op, const Place& place, KernelFn f, void* context) {
  if (place.backend) return put_in_for(op, place.layer, *place.backend, f, context);
  return put_in(op, place.layer, f, context);
}

// A kernel that passes the call on to the layers below its own, which the context contains.
void fall_through(void* context, OpCall& c) {
  redispatch(c, static_cast<Layer>(reinterpret_cast<uintptr_t>(context)));
}

const char* name_of(Randomness r) {
  return r == Randomness::Error ? "error" : r == Randomness::Same ? "same" : "different";
}

bool is_batched_at(const OpCall& c, int64_t level) {
  bool found = false;
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) {
    const TransformWrapper* w = transform_wrapper(t);
    found |= w && w->level == level && w->batched;
  });
  return found;
}

// Runs a batching rule written in Python, rule(batch size, randomness, level, args, kwargs) ->
// (output, batch dimensions), with the vmap level removed. Calls at grad levels are not affected.
void call_python_batch_rule(void* context, OpCall& c) {
  const Interpreter* top = thread_state.interpreters;
  if (!top || top->kind != Interpreter::Kind::Vmap || !is_batched_at(c, top->level)) {
    c.layers |= Layer::Transforms;
    return layer_handlers[static_cast<int>(Layer::Transforms)](c);
  }
  HoldGil gil;
  const PythonArguments p = arguments_of(c);
  const int64_t size = top->batch_size, level = top->level;
  const char* randomness = name_of(top->randomness);
  Object made;
  {
    const WithoutTop below;
    made = Object::take(PyObject_CallFunction(
        static_cast<PyObject*>(context), "LsLOO", static_cast<long long>(size), randomness,
        static_cast<long long>(level), p.args.get(), p.kwargs.get()));
  }
  const Object wrap = imported("facula._library.rules", "wrap_batched");
  const Object r = Object::take(
      PyObject_CallFunction(wrap.get(), "OL", made.get(), static_cast<long long>(level)));
  store_results(c, r.get());
}

// Runs a fallback written in Python, fn(op, *args, **kwargs).
void call_python_fallback(void* context, OpCall& c) {
  HoldGil gil;
  const PythonArguments p = arguments_of(c);
  const Object op = Object::take(PyTuple_Pack(1, overload_object(const_cast<Operator&>(*c.op))));
  const Object args = Object::take(PySequence_Concat(op.get(), p.args.get()));
  const Object r =
      Object::take(PyObject_Call(static_cast<PyObject*>(context), args.get(), p.kwargs.get()));
  store_results(c, r.get());
}

// _library_fallback(function or None, dispatch_key)
Object put_fallback(PyObject*, PyObject* args, PyObject*) {
  PyObject* function;
  const char* key;
  if (!PyArg_ParseTuple(args, "Os:_library_fallback", &function, &key)) throw_python();
  Layer layer;
  const bool backend =
      layer_of(key, layer) && LayerSet(layer) == (LayerSet(layer) & backend_layers);
  check_kind(ErrorKind::NotImplemented, backend, "fallback(): the dispatch key '", key,
             "' is not a backend; only backends take fallbacks");
  if (function == Py_None)
    set_backend_fallback(layer, nullptr, nullptr);
  else
    set_backend_fallback(layer, call_python_fallback, Py_NewRef(function));
  return none();
}

// Updates whether an operator made at run time runs above autograd: it does while its composite
// kernel is registered as CompositeImplicitAutograd.
void settle_implicit(Operator& op) {
  if (op.record->any || op.record->cpu || op.record->meta) return;  // a built-in operator
  const Slot* in_force = op.composite_slot.load(std::memory_order_acquire);
  bool implicit = false;
  for (const Kept& k : kept())
    if (in_force && k.registration.op == &op && k.registration.slot == in_force)
      implicit = k.implicit;
  const_cast<OpInfo&>(op.info()).implicit = implicit;  // made at run time, so it is not constant
}

// _library_impl(ns, name, overload, function, dispatch_key) -> number for _library_remove
Object put(PyObject*, PyObject* args, PyObject*) {
  const char *ns, *name, *overload, *key;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "sssOs:_library_impl", &ns, &name, &overload, &function, &key))
    throw_python();
  Operator* op = find_operator(ns, name, overload);
  check(op != nullptr, "impl(): there is no operator ", ns, "::", name, *overload ? "." : "",
        overload);
  const bool falls = function == Py_None;
  check_type(falls || PyCallable_Check(function), "impl(): expected a callable; got ",
             type_name(function));
  Kept k{{}, Py_NewRef(function), false};
  Place place;
  const std::string_view wanted(key);
  if (wanted == "CompositeImplicitAutograd" || wanted == "CompositeExplicitAutograd" ||
      wanted.empty()) {
    k.registration = put_in_composite(*op, call_python_kernel, function);
    k.implicit = wanted == "CompositeImplicitAutograd";
  } else if (!place_of(wanted, place)) {
    throw Error(ErrorKind::NotImplemented, "impl(): the dispatch key '", wanted,
                "' is not supported");
  } else if (falls) {
    auto* where = reinterpret_cast<void*>(static_cast<uintptr_t>(place.layer));
    k.registration = put_at(*op, place, fall_through, where);
  } else if (wanted == "FuncTorchBatched") {
    k.registration = put_at(*op, place, call_python_batch_rule, function);
  } else {
    k.registration = put_at(*op, place, call_python_kernel, function);
  }
  kept().push_back(k);
  if (k.registration.composite) settle_implicit(*op);
  return integer(static_cast<int64_t>(kept().size() - 1));
}

Object remove(PyObject*, PyObject* number) {
  const int64_t i = PyLong_AsLongLong(number);
  if (i == -1 && PyErr_Occurred()) throw_python();
  check_index(i >= 0 && i < static_cast<int64_t>(kept().size()), "there is no registration ", i);
  Kept& k = kept()[static_cast<size_t>(i)];
  const Registration taken = std::exchange(k.registration, {});
  take_out(taken);
  if (taken.op && taken.composite) settle_implicit(*taken.op);
  return none();
}

// _redispatch(op, layer name): whether the operator has a kernel for a dispatch key.
Object has_kernel(PyObject*, PyObject* args, PyObject*) {
  const char *ns, *name, *overload, *key;
  if (!PyArg_ParseTuple(args, "ssss:_has_kernel", &ns, &name, &overload, &key)) throw_python();
  Operator* op = find_operator(ns, name, overload);
  if (!op) return boolean(false);
  Place place;
  if (!place_of(key, place)) return boolean(has_composite_kernel(*op));
  const bool own = place.layer == Layer::CPU && op->record->cpu;
  return boolean(own || put_in_at(*op, place.layer, place.backend.value_or(place.layer)));
}

// _layers_above(dispatch_key): the bits of the layers above the key's.
Object layers_above(PyObject*, PyObject* key) {
  Layer layer;
  check(layer_of(text_of(key), layer), "get_kernel(): the dispatch key '", text_of(key),
        "' names no layer");
  return integer(~(LayerSet::below(layer) | layer).bits());
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {
    {"_library_define", guarded<define>, METH_O, nullptr},
    {"_library_impl", with_keywords(guarded_keywords<put>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_layers_above", guarded<layers_above>, METH_O, nullptr},
    {"_library_undefine", guarded<undefine>, METH_O, nullptr},
    {"_library_fallback", with_keywords(guarded_keywords<put_fallback>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_library_remove", guarded<remove>, METH_O, nullptr},
    {"_has_kernel", with_keywords(guarded_keywords<has_kernel>), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_library(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
