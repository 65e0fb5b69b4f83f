#include "bindings/call/callable.h"

#include <map>

#include "autograd/variable.h"
#include "bindings/call/convert.h"
#include "bindings/call/operators.h"
#include "bindings/call/plain_call.h"
#include "bindings/modes/overrides.h"
#include "bindings/module/package.h"
#include "core/holders.h"
#include "dispatch/running_calls.h"

namespace facula::python {
namespace {

CallableObject* callable_object(PyObject* o) { return reinterpret_cast<CallableObject*>(o); }

// --- the call

// Whether to release the GIL for a call: it is long enough to be worth it, and runs no Python code.
bool drops_gil(const Operator& op, const Value* args) {
  const OpInfo& info = op.info();
  const int64_t large = long_call_elements(op);
  if (tracks_allocations()) return false;  // each allocation asks for the Python source line
  // The geometry and memory of tensors may change only under the GIL.
  if (op.record->flags & geometry_only) return false;
  constexpr LayerSet python_layers = LayerSet(Layer::Subclass) | Layer::Modes | Layer::Transforms;
  bool big = false;
  LayerSet layers = thread_state.include;
  for (int i = 0; i < info.args; ++i) {
    if (args[i].tag == Tag::Tensor) {
      big |= args[i].tensor->numel > large;
      layers |= args[i].tensor->layers;
    } else if (args[i].tag == Tag::TensorList) {
      for (const Tensor& t : args[i].as_tensors())
        if (t.defined()) {
          big |= t.numel() > large;
          layers |= t->layers;
        }
    } else if (args[i].tag == Tag::IntList && makes_from_sizes(info)) {
      big |= product_exceeds(args[i].as_ints(), large);
    }
  }
  return big && (layers & python_layers).empty();
}

// In-place operators on lists return nothing in their schemas, but in Python they return the list.
bool returns_list(const OpInfo& info, Style style) {
  return info.results == 0 && style != Style::Schema && (info.mutated & 1) && (info.list_args & 1);
}
Object first_argument(const Given& g, const OpInfo& info) {
  if (g.positional > 0) return Object::share(g.args[0]);
  for (size_t i = 0; i < g.keyword_count(); ++i)
    if (text_of(g.keyword(i)) == info.schema.args[0].name) return Object::share(g.keyword_value(i));
  return none();
}

Object run(Parsed& p, const Given& given, Style style) {
  const OpInfo& info = p.op->info();
  ResultSlots r(info.results);
  if (drops_gil(*p.op, p.args())) {
    const DropGil drop(true);
    const RunningCall running(p.args(), info.args);
    call(*p.op, p.args(), r.slots);
  } else {
    call(*p.op, p.args(), r.slots);
  }
  if (p.requires_grad && r.slots[0].is_tensor()) set_requires_grad(r.slots[0].as_tensor(), true);
  if (returns_list(info, style)) [[unlikely]]
    return first_argument(given, info);
  return results_object(info, r.slots, style == Style::Schema);
}

Object override_call(PyObject* callable, const Given& g, const Parsed& p) {
  const Object args = Object::take(PyTuple_New(static_cast<Py_ssize_t>(g.positional)));
  for (size_t i = 0; i < g.positional; ++i)
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), Py_NewRef(g.args[i]));
  Object kwargs;
  if (g.keyword_count()) {
    kwargs = Object::take(PyDict_New());
    for (size_t i = 0; i < g.keyword_count(); ++i)
      checked(PyDict_SetItem(kwargs.get(), g.keyword(i), g.keyword_value(i)));
  }
  return call_overrides(callable, p.overloaded, args.get(), kwargs.get());
}

PyObject* vectorcall(PyObject* o, PyObject* const* args, size_t n, PyObject* keywords) {
  try {
    const Given given{args, static_cast<size_t>(PyVectorcall_NARGS(n)), keywords};
    if (const Signature* first = packet_of(o).first_for(given.positional))
      if (PyObject* result = try_plain_call(*first, given)) return result;
    return call_packet(o, packet_of(o), given).leak();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* new_callable(PyTypeObject* type, Packet* packet) {
  CallableObject* o = PyObject_New(CallableObject, type);
  if (!o) throw_python();
  o->vectorcall = vectorcall;
  o->packet = packet;
  o->dict = o->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

// --- attributes

const Signature* first_signature(PyObject* o) {
  const auto& all = packet_of(o).signatures();
  return all.empty() ? nullptr : all[0].get();
}

Object get_name(PyObject* o, PyObject*) { return string(packet_of(o).shown); }
Object get_module(PyObject* o, PyObject*) { return string(packet_of(o).module); }
Object get_qualname(PyObject* o, PyObject*) {
  const Packet& p = packet_of(o);
  return string(p.style == Style::Method ? "Tensor." + p.shown : p.shown);
}
Object get_doc(PyObject* o, PyObject*) {
  Packet& p = packet_of(o);
  std::string text;
  for (const auto& s : p.signatures()) {
    std::string line = s->text_signature();
    if (line.starts_with("($self")) line.erase(1, 1);  // the mark is for __text_signature__ alone
    text += p.shown + line + "\n";
  }
  const Signature* first = first_signature(o);
  if (first && *first->op->record->doc) text += std::string("\n") + first->op->record->doc + "\n";
  return string(text);
}
Object get_text_signature(PyObject* o, PyObject*) {
  const Signature* s = first_signature(o);
  return s && packet_of(o).signatures().size() == 1 ? string(s->text_signature()) : none();
}
// One signature with the parameters of all overloads.
Object get_signature(PyObject* o, PyObject*) {
  const auto& all = packet_of(o).signatures();
  const Object make = imported("facula._methods", "signature_of");
  const Object texts = Object::take(PyList_New(0));
  for (const auto& s : all) checked(PyList_Append(texts.get(), string(s->text_signature()).get()));
  if (all.empty()) checked(PyList_Append(texts.get(), string("(*args, **kwargs)").get()));
  return Object::take(PyObject_CallOneArg(make.get(), texts.get()));
}

template <auto F>
PyObject* getter(PyObject* o, void*) {
  return guarded<F>(o, nullptr);
}

PyObject* repr_function(PyObject* o) {
  return PyUnicode_FromFormat("<built-in function %s>", packet_of(o).shown.c_str());
}
PyObject* repr_method(PyObject* o) {
  return guard([&] {
    const std::string& name = packet_of(o).shown;
    return string(concat("<method '", name, "' of '", in_package("Tensor"), "' objects>")).leak();
  });
}

PyObject* reduce_function(PyObject* o, PyObject*) {
  return PyUnicode_FromString(packet_of(o).shown.c_str());
}
PyObject* reduce_method(PyObject* o, PyObject*) {
  return guard([&] {
    const Object get = imported("builtins", "getattr");
    return Py_BuildValue("(O(Os))", get.get(), tensor_type, packet_of(o).shown.c_str());
  });
}
PyObject* copy_self(PyObject* o, PyObject*) { return Py_NewRef(o); }

PyObject* bind_method(PyObject* o, PyObject* self, PyObject*) {
  if (!self || self == Py_None) return Py_NewRef(o);
  return PyMethod_New(o, self);
}

void callable_dealloc(PyObject* o) {
  if (callable_object(o)->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(callable_object(o)->dict);
  Py_TYPE(o)->tp_free(o);
}

PyGetSetDef common_properties[] = {
    {"__name__", getter<get_name>, nullptr, nullptr, nullptr},
    {"__qualname__", getter<get_qualname>, nullptr, nullptr, nullptr},
    {"__module__", getter<get_module>, nullptr, nullptr, nullptr},
    {"__doc__", getter<get_doc>, nullptr, nullptr, nullptr},
    {"__text_signature__", getter<get_text_signature>, nullptr, nullptr, nullptr},
    {"__signature__", getter<get_signature>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <PyCFunction Reduce>
PyMethodDef callable_methods[] = {{"__reduce__", Reduce, METH_NOARGS, nullptr},
                                  {"__copy__", copy_self, METH_NOARGS, nullptr},
                                  {"__deepcopy__", copy_self, METH_O, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

PyTypeObject callable_base(const char* name, reprfunc repr, PyMethodDef* methods) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(CallableObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  t.tp_vectorcall_offset = offsetof(CallableObject, vectorcall);
  t.tp_call = PyVectorcall_Call;
  t.tp_dealloc = callable_dealloc;
  t.tp_dictoffset = offsetof(CallableObject, dict);
  t.tp_weaklistoffset = offsetof(CallableObject, weakrefs);
  t.tp_repr = repr;
  t.tp_methods = methods;
  t.tp_getset = common_properties;
  return t;
}
PyTypeObject make_method_type() {
  PyTypeObject t =
      callable_base("facula.method_descriptor", repr_method, callable_methods<reduce_method>);
  t.tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  t.tp_descr_get = bind_method;
  return t;
}

// --- the names of all operators

// Calls f(name) for each alias of a record.
template <class F>
void for_each_alias(const OpRecord& r, F&& f) {
  std::string_view rest = r.aliases;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    std::string_view one = rest.substr(0, comma);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    if (!one.empty()) f(one);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
}

struct NameTable {
  std::map<std::string, std::string, std::less<>> aliases;  // alias -> name of the operator
  std::map<std::string, PyObject*, std::less<>> methods;
};
NameTable& names() {
  static auto* t = new NameTable;
  return *t;
}

void note_aliases(const OperatorEntry& e) {
  if (!*e.op->record->aliases || e.op->variant == Variant::Out) return;
  const bool in_place = e.op->variant == Variant::Inplace;
  for_each_alias(*e.op->record, [&](std::string_view alias) {
    std::string name(alias);
    if (in_place) name += "_";
    names().aliases.emplace(std::move(name), std::string(e.name));
  });
}

Packet* new_packet(std::string_view ns, std::string_view own, std::string_view shown,
                   std::string module, Style style) {
  auto* p = new Packet;
  p->ns = ns;
  p->name = own;
  p->shown = shown;
  p->module = std::move(module);
  p->style = style;
  return p;
}

void add_method(PyObject* type_dict, std::string_view own, std::string_view shown) {
  PyObject* o = new_callable(
      &method_type, new_packet("aten", own, shown, std::string(package_name()), Style::Method));
  names().methods[std::string(shown)] = o;
  if (!type_dict) return;
  if (shown.starts_with("__")) return;
  const Object key = string(shown);
  // A method that the binding defines itself is kept.
  const int there = PyDict_Contains(tensor_base_type.tp_dict, key.get());
  checked(there);
  if (!there) checked(PyDict_SetItem(type_dict, key.get(), o));
}

// The only module of an alias with a prefix, such as special_sinc.
std::string_view alias_module(std::string_view alias) {
  for (const std::string_view m : {"special", "linalg", "fft"})
    if (alias.starts_with(m) && alias.substr(m.size()).starts_with("_")) return m;
  return {};
}

bool is_method(const OperatorEntry& e) {
  return e.op->variant != Variant::Out && (e.op->record->forms & method);
}

// Makes the method descriptors in one pass over the sorted table of operators. Signatures are made
// when a method is first called.
void add_methods(PyObject* type_dict) {
  std::string_view last;
  for (const OperatorEntry& e : builtin_operators()) {
    note_aliases(e);
    if (e.name == last || !is_method(e)) continue;
    last = e.name;
    add_method(type_dict, e.name, e.name);
  }
  for (const auto& [alias, own] : names().aliases)
    if (names().methods.contains(own) && !names().methods.contains(alias) &&
        alias_module(alias).empty())
      add_method(type_dict, own, alias);
}

bool any_serves(std::string_view own, Style style) {
  for (const OperatorEntry& e : builtin_operators())
    if (e.name == own && serves(*e.op, style)) return true;
  return false;
}

std::string full_name(std::string_view python_module, std::string_view name) {
  if (python_module.empty() || python_module == "nn") return std::string(name);
  return concat(python_module, "_", name);
}

std::string own_name(std::string_view python_module, std::string_view name) {
  const std::string wanted = full_name(python_module, name);
  const auto alias = names().aliases.find(wanted);
  return alias == names().aliases.end() ? wanted : alias->second;
}

// Whether the operator has a function in this module.
bool stands_in(std::string_view own, std::string_view python_module) {
  for (const OperatorEntry& e : builtin_operators())
    if (e.name == own) {
      const std::string_view m = e.op->record->python_module;
      return m == python_module || (python_module.empty() && m != "nn");
    }
  return false;
}

// The same for one of its names, which may be an alias.
bool shown_in(std::string_view own, std::string_view shown, std::string_view python_module) {
  const std::string_view m = shown == own ? std::string_view() : alias_module(shown);
  return m.empty() ? stands_in(own, python_module) : m == python_module;
}

std::string module_name(std::string_view python_module) {
  if (python_module.empty()) return std::string(package_name());
  return in_package(python_module == "nn" ? "_C._nn" : python_module);
}

void note_all(const Given& given, Parsed& p) {
  const size_t n = given.positional + given.keyword_count();
  for (size_t i = 0; i < n; ++i) note_overloaded(given.args[i], p.overloaded);
}

// Parses the arguments. If none fits, an argument may still have an override, in a place where no
// tensor is expected. Operators of facula.ops raise RuntimeError instead of TypeError, as PyTorch's
// do.
void parse_or_override(Packet& packet, const Given& given, Parsed& p) {
  try {
    parse(packet, given, p);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Type) throw;
    note_all(given, p);
    if (!p.overloaded.empty()) return;
    if (packet.style != Style::Schema) throw;
    throw Error(ErrorKind::Runtime, packet.ns, "::", e.what());
  }
}

}  // namespace

PyTypeObject function_type =
    callable_base("facula.builtin_function", repr_function, callable_methods<reduce_function>);
PyTypeObject method_type = make_method_type();

Object call_packet(PyObject* callable, Packet& packet, const Given& given) {
  Parsed p;
  parse_or_override(packet, given, p);
  if (!p.overloaded.empty() || function_mode_active()) [[unlikely]]
    return override_call(callable, given, p);
  return run(p, given, packet.style);
}

Object call_method(const char* name, std::initializer_list<PyObject*> args) {
  PyObject* o = method_object(name);
  if (!o)
    throw Error(ErrorKind::NotImplemented, "facula has no operator aten::", name, " in this build");
  return call_packet(o, packet_of(o), Given{args.begin(), args.size(), nullptr});
}

PyObject* method_object(const char* name) {
  const auto it = names().methods.find(std::string_view(name));
  return it == names().methods.end() ? nullptr : it->second;
}

PyObject* function_object(std::string_view python_module, std::string_view name) {
  static auto* made = new std::map<std::string, PyObject*, std::less<>>;
  const std::string key = concat(python_module, ".", name);
  if (const auto it = made->find(key); it != made->end()) return it->second;
  const std::string own = own_name(python_module, name), shown = full_name(python_module, name);
  if (!shown_in(own, shown, python_module) || !any_serves(own, Style::Function)) return nullptr;
  Packet* p = new_packet("aten", own, name, module_name(python_module), Style::Function);
  return (*made)[key] = new_callable(&function_type, p);
}

PyObject* overload_object(Operator& op) {
  if (void* there = op.python_callable.load(std::memory_order_acquire))
    return static_cast<PyObject*>(there);
  const Schema& s = op.info().schema;
  Packet* p = new_packet(s.ns, s.name, s.name, in_package("ops." + s.ns), Style::Schema);
  p->only = &op;
  PyObject* o = new_callable(&overload_type, p);
  op.python_callable.store(o, std::memory_order_release);
  return o;
}

PyObject* overload_packet_object(std::string_view ns, std::string_view name) {
  static auto* made = new std::map<std::string, PyObject*, std::less<>>;
  const std::string key = concat(ns, "::", name);
  if (find_overloads(ns, name).empty()) return nullptr;
  if (const auto it = made->find(key); it != made->end()) {
    packet_of(it->second).refresh();
    return it->second;
  }
  Packet* p = new_packet(ns, name, name, in_package(concat("ops.", ns)), Style::Schema);
  return (*made)[key] = new_callable(&overload_packet_type, p);
}

namespace {

// _function(python_module, name): the function object, or AttributeError.
PyObject* find_function(PyObject*, PyObject* args) {
  const char *module, *name;
  if (!PyArg_ParseTuple(args, "ss", &module, &name)) return nullptr;
  return guard([&]() -> PyObject* {
    PyObject* o = function_object(module, name);
    if (!o)
      throw Error(ErrorKind::Attribute, "module '", module_name(module), "' has no attribute '",
                  name, "'");
    return Py_NewRef(o);
  });
}

// _function_names(python_module): all names that _function would find.
Object function_names(PyObject*, PyObject* module) {
  const std::string_view wanted = text_of(module);
  const Object set = Object::take(PySet_New(nullptr));
  auto add = [&](std::string_view own, std::string_view shown) {
    if (!shown_in(own, shown, wanted)) return;
    std::string name(shown);
    if (!wanted.empty() && wanted != "nn") {
      const std::string prefix = std::string(wanted) + "_";
      if (!name.starts_with(prefix)) return;
      name.erase(0, prefix.size());
    }
    checked(PySet_Add(set.get(), string(name).get()));
  };
  std::string_view last;
  for (const OperatorEntry& e : builtin_operators()) {
    if (e.name == last || !serves(*e.op, Style::Function)) continue;
    last = e.name;
    add(e.name, e.name);
  }
  for (const auto& [alias, own] : names().aliases)
    if (any_serves(own, Style::Function)) add(own, alias);
  return Object::take(PySequence_List(set.get()));
}

// _return_type(name): the class of the tuples that an operator returns, or None.
Object find_return_type(PyObject*, PyObject* name) {
  auto* type = reinterpret_cast<PyObject*>(named_return_type(text_of(name)));
  return Object::share(type ? type : Py_None);
}

PyMethodDef functions[] = {{"_function", find_function, METH_VARARGS, nullptr},
                           {"_return_type", guarded<find_return_type>, METH_O, nullptr},
                           {"_function_names", guarded<function_names>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_callables(PyObject* module) {
  add_type(module, function_type, "_BuiltinFunction");
  add_type(module, method_type, "_MethodDescriptor");
  checked(PyModule_AddFunctions(module, functions));
  add_methods(tensor_type->tp_dict);
  PyType_Modified(tensor_type);
}

}  // namespace facula::python
