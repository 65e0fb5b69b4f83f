// facula.library: operators defined and kernels put in from Python.
#include <deque>
#include <map>

#include "callable.h"
#include "modes.h"
#include "tensor_members.h"

namespace facula::python {
namespace {

struct Kept {
  Registration registration;
  PyObject* function;  // kept for good: calls may be under way when it is taken out
};
std::deque<Kept>& kept() {
  static auto* k = new std::deque<Kept>;
  return *k;
}

Object define(PyObject*, PyObject* schema) {
  return Object::share(overload_object(define_operator(text_of(schema))));
}

bool layer_of(std::string_view key, Layer& layer) {
  static const std::map<std::string_view, Layer> layers = {{"CPU", Layer::CPU},
                                                           {"CUDA", Layer::CUDA},
                                                           {"Meta", Layer::Meta},
                                                           {"Autograd", Layer::Autograd},
                                                           {"AutogradCPU", Layer::Autograd},
                                                           {"AutocastCPU", Layer::Autocast},
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

// An operator made at run time whose kernel is all that it has: autograd sees what it calls.
void expand_above_autograd(Operator& op, bool implicit) {
  const bool built_in = op.record->any || op.record->cpu || op.record->meta;
  if (!implicit || built_in) return;
  const_cast<OpInfo&>(op.info()).implicit = true;  // its own heap record: nobody else reads it
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
  check_type(PyCallable_Check(function), "impl(): expected a callable; got ", type_name(function));
  Kept k{{}, Py_NewRef(function)};
  Layer layer;
  const std::string_view wanted(key);
  if (wanted == "CompositeImplicitAutograd" || wanted == "CompositeExplicitAutograd" ||
      wanted.empty()) {
    k.registration = put_in_composite(*op, call_python_kernel, function);
    expand_above_autograd(*op, wanted == "CompositeImplicitAutograd");
  } else if (layer_of(wanted, layer)) {
    k.registration = put_in(*op, layer, call_python_kernel, function);
  } else {
    throw Error(ErrorKind::NotImplemented, "impl(): the dispatch key '", wanted,
                "' is not supported");
  }
  kept().push_back(k);
  return integer(static_cast<int64_t>(kept().size() - 1));
}

Object remove(PyObject*, PyObject* number) {
  const int64_t i = PyLong_AsLongLong(number);
  if (i == -1 && PyErr_Occurred()) throw_python();
  check_index(i >= 0 && i < static_cast<int64_t>(kept().size()), "there is no registration ", i);
  Kept& k = kept()[static_cast<size_t>(i)];
  take_out(k.registration);
  k.registration = {};
  return none();
}

// _redispatch(op, layer name): whether the operator has a kernel for a dispatch key.
Object has_kernel(PyObject*, PyObject* args, PyObject*) {
  const char *ns, *name, *overload, *key;
  if (!PyArg_ParseTuple(args, "ssss:_has_kernel", &ns, &name, &overload, &key)) throw_python();
  Operator* op = find_operator(ns, name, overload);
  if (!op) return boolean(false);
  Layer layer;
  if (!layer_of(key, layer)) return boolean(has_composite_kernel(*op));
  const bool own = layer == Layer::CPU && op->record->cpu;
  return boolean(own || op->slots[static_cast<int>(layer)].load() != nullptr);
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {
    {"_library_define", guarded<define>, METH_O, nullptr},
    {"_library_impl", with_keywords(guarded_keywords<put>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_library_remove", guarded<remove>, METH_O, nullptr},
    {"_has_kernel", with_keywords(guarded_keywords<has_kernel>), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_library(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
