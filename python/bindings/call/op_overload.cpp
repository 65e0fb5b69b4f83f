// The objects in facula.ops: OpOverloadPacket (all overloads of a name) and OpOverload (one of
// them).
#include <algorithm>

#include "bindings/call/callable.h"
#include "bindings/call/convert.h"
#include "bindings/tensor/tensor_members.h"

namespace facula::python {
namespace {

const Operator& operator_of(PyObject* o) { return *packet_of(o).only; }
const Schema& schema_of(PyObject* o) { return operator_of(o).info().schema; }

std::string overload_of(const Schema& s) { return s.overload.empty() ? "default" : s.overload; }

// --- OpOverload

PyObject* overload_repr(PyObject* o) {
  return guard([&] {
    const Schema& s = schema_of(o);
    return string(concat("<OpOverload(op='", s.ns, ".", s.name, "', overload='", overload_of(s),
                         "')>"))
        .leak();
  });
}
PyObject* overload_str(PyObject* o) {
  return guard([&] {
    const Schema& s = schema_of(o);
    return string(concat(s.ns, ".", s.name, ".", overload_of(s))).leak();
  });
}
Object overload_name(PyObject* o, PyObject*) {
  const Schema& s = schema_of(o);
  return string(concat(s.ns, "::", s.name, s.overload.empty() ? "" : ".", s.overload));
}
Object overload_short_name(PyObject* o, PyObject*) {
  const Schema& s = schema_of(o);
  return string(s.name + "." + overload_of(s));
}
Object overload_namespace(PyObject* o, PyObject*) { return string(packet_of(o).ns); }
Object overload_module(PyObject* o, PyObject*) { return string(packet_of(o).module); }
Object overload_packet(PyObject* o, PyObject*) {
  return Object::share(overload_packet_object(packet_of(o).ns, packet_of(o).name));
}
Object overload_word(PyObject* o, PyObject*) { return string(overload_of(schema_of(o))); }
Object overload_schema(PyObject* o, PyObject*) {
  static PyObject* make = nullptr;
  if (!make) make = imported("facula._schema", "FunctionSchema").leak();
  const Schema& s = schema_of(o);
  const Object text = string(s.str());
  return Object::take(PyObject_CallFunction(make, "OO", o, text.get()));
}
Object overload_is_view(PyObject* o, PyObject*) { return boolean(operator_of(o).info().view); }
Object overload_doc(PyObject* o, PyObject*) { return string(operator_of(o).record->doc); }

// (name, type text, keyword only, default or None, has default, alias sets, written) per argument.
Object arguments_of(const std::vector<Argument>& list) {
  Object all = Object::take(PyList_New(0));
  for (const Argument& a : list) {
    const Object value = a.has_default ? value_object(default_value(a)) : none();
    const Object one = Object::take(Py_BuildValue(
        "(ssOOOkO)", a.name.c_str(), a.type.str().c_str(), a.keyword_only ? Py_True : Py_False,
        value.get(), a.has_default ? Py_True : Py_False, static_cast<unsigned long>(a.alias.before),
        a.is_written() ? Py_True : Py_False));
    checked(PyList_Append(all.get(), one.get()));
  }
  return all;
}
Object overload_arguments(PyObject* o, PyObject*) { return arguments_of(schema_of(o).args); }
Object overload_returns(PyObject* o, PyObject*) { return arguments_of(schema_of(o).results); }
bool is_tensor_result(const Argument& a) { return a.type.kind == TypeKind::Tensor; }
Object overload_tags(PyObject* o, PyObject*) {
  const uint32_t flags = operator_of(o).record->flags;
  Object list = Object::take(PyList_New(0));
  auto add = [&](uint32_t flag, const char* name) {
    if (flags & flag) checked(PyList_Append(list.get(), string(name).get()));
  };
  add(facula::pointwise, "pointwise");
  add(facula::random, "nondeterministic_seeded");
  const std::vector<Argument>& results = schema_of(o).results;
  const bool tensors = std::ranges::any_of(results, &is_tensor_result);
  add(facula::shape_from_data, tensors ? "dynamic_output_shape" : "data_dependent_output");
  return list;
}

Object tag_objects(PyObject* o, PyObject*) {
  const Object find = imported("facula._tags", "tags_of");
  return Object::take(PyObject_CallOneArg(find.get(), o));
}

template <auto F>
PyObject* getter(PyObject* o, void*) {
  return guarded<F>(o, nullptr);
}

PyObject* overload_reduce(PyObject* o, PyObject*) {
  return guard([&] {
    const Object find = imported("facula._C", "_overload");
    const Schema& s = schema_of(o);
    return Py_BuildValue("(O(sss))", find.get(), s.ns.c_str(), s.name.c_str(), s.overload.c_str());
  });
}

PyMethodDef overload_methods[] = {
    {"name", guarded<overload_name>, METH_NOARGS, "The full name, \"aten::add.Tensor\"."},
    {"_arguments", guarded<overload_arguments>, METH_NOARGS, nullptr},
    {"_returns", guarded<overload_returns>, METH_NOARGS, nullptr},
    {"_tags", guarded<overload_tags>, METH_NOARGS, nullptr},
    {"__reduce__", overload_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef overload_properties[] = {
    {"__name__", getter<overload_short_name>, nullptr, nullptr, nullptr},
    {"__qualname__", getter<overload_short_name>, nullptr, nullptr, nullptr},
    {"__module__", getter<overload_module>, nullptr, nullptr, nullptr},
    {"__doc__", getter<overload_doc>, nullptr, nullptr, nullptr},
    {"namespace", getter<overload_namespace>, nullptr, nullptr, nullptr},
    {"overloadpacket", getter<overload_packet>, nullptr, nullptr, nullptr},
    {"_overloadname", getter<overload_word>, nullptr, nullptr, nullptr},
    {"_schema", getter<overload_schema>, nullptr, nullptr, nullptr},
    {"tags", getter<tag_objects>, nullptr, "What is known of the operator: a list of Tag.",
     nullptr},
    {"is_view", getter<overload_is_view>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// --- OpOverloadPacket

Object packet_name(PyObject* o, PyObject*) { return string(packet_of(o).name); }
Object packet_qualified(PyObject* o, PyObject*) {
  return string(packet_of(o).ns + "::" + packet_of(o).name);
}
Object packet_overloads(PyObject* o, PyObject*) {
  Object list = Object::take(PyList_New(0));
  for (Operator* op : find_overloads(packet_of(o).ns, packet_of(o).name))
    checked(PyList_Append(list.get(), string(overload_of(op->info().schema)).get()));
  return list;
}
PyObject* packet_str(PyObject* o) {
  return guard([&] { return string(packet_of(o).ns + "." + packet_of(o).name).leak(); });
}
PyObject* packet_repr(PyObject* o) {
  return guard([&] {
    return string(concat("<OpOverloadPacket(op='", packet_of(o).ns, ".", packet_of(o).name, "')>"))
        .leak();
  });
}
PyObject* packet_getattr(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return guard([&]() -> PyObject* {
    const std::string_view overload = text_of(name);
    if (overload.starts_with("__")) return nullptr;
    Operator* op = find_operator(packet_of(o).ns, packet_of(o).name, overload);
    if (!op) {
      PyErr_Clear();
      throw Error(ErrorKind::Attribute, "The underlying op of '", packet_of(o).ns, ".",
                  packet_of(o).name, "' has no overload name '", overload, "'");
    }
    PyErr_Clear();
    return Py_NewRef(overload_object(*op));
  });
}
PyObject* packet_iter(PyObject* o) {
  return guard([&] {
    const Object list = packet_overloads(o, nullptr);
    return checked(PyObject_GetIter(list.get()));
  });
}

PyMethodDef packet_methods[] = {
    {"overloads", guarded<packet_overloads>, METH_NOARGS, "The names of the overloads."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef packet_properties[] = {
    {"__name__", getter<packet_name>, nullptr, nullptr, nullptr},
    {"__qualname__", getter<packet_qualified>, nullptr, nullptr, nullptr},
    {"_qualified_op_name", getter<packet_qualified>, nullptr, nullptr, nullptr},
    {"__module__", getter<overload_module>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject callable_base(const char* name) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(CallableObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  t.tp_vectorcall_offset = offsetof(CallableObject, vectorcall);
  t.tp_call = PyVectorcall_Call;
  t.tp_dictoffset = offsetof(CallableObject, dict);
  t.tp_weaklistoffset = offsetof(CallableObject, weakrefs);
  return t;
}
PyTypeObject make_overload() {
  PyTypeObject t = callable_base("facula._ops.OpOverload");
  t.tp_repr = overload_repr;
  t.tp_str = overload_str;
  t.tp_methods = overload_methods;
  t.tp_getset = overload_properties;
  t.tp_doc = "One operator; calling it goes through all layers.";
  return t;
}
PyTypeObject make_packet() {
  PyTypeObject t = callable_base("facula._ops.OpOverloadPacket");
  t.tp_repr = packet_repr;
  t.tp_str = packet_str;
  t.tp_getattro = packet_getattr;
  t.tp_iter = packet_iter;
  t.tp_methods = packet_methods;
  t.tp_getset = packet_properties;
  t.tp_doc = "All overloads of an operator's name; calling it picks one by the arguments.";
  return t;
}

PyObject* find_packet(PyObject*, PyObject* args) {
  const char *ns, *name;
  if (!PyArg_ParseTuple(args, "ss", &ns, &name)) return nullptr;
  return guard([&]() -> PyObject* {
    PyObject* o = overload_packet_object(ns, name);
    if (!o) Py_RETURN_NONE;
    return Py_NewRef(o);
  });
}
PyObject* find_overload(PyObject*, PyObject* args) {
  const char *ns, *name, *overload;
  if (!PyArg_ParseTuple(args, "sss", &ns, &name, &overload)) return nullptr;
  return guard([&]() -> PyObject* {
    Operator* op = find_operator(ns, name, overload);
    if (!op) Py_RETURN_NONE;
    return Py_NewRef(overload_object(*op));
  });
}
Object operator_names(PyObject*, PyObject* ns) {
  Object list = Object::take(PyList_New(0));
  auto add = [&](std::string_view name) { checked(PyList_Append(list.get(), string(name).get())); };
  if (text_of(ns) == "aten")
    for (const OperatorEntry& e : builtin_operators()) add(e.name);
  for (const std::string& name : runtime_operator_names(text_of(ns))) add(name);
  return list;
}

PyMethodDef functions[] = {{"_packet", find_packet, METH_VARARGS, nullptr},
                           {"_overload", find_overload, METH_VARARGS, nullptr},
                           {"_operator_names", guarded<operator_names>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject overload_type = make_overload();
PyTypeObject overload_packet_type = make_packet();

void add_op_overloads(PyObject* module) {
  add_type(module, overload_type, "OpOverload");
  add_type(module, overload_packet_type, "OpOverloadPacket");
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python
