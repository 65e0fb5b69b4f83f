// facula._C._operator_table(): the contents of all operator records, for coverage tables and docs.
#include <string>

#include "bindings/call/callable.h"
#include "bindings/tensor/tensor_members.h"
#include "dispatch/batch_families.h"
#include "dispatch/operator.h"

namespace facula::python {
namespace {

struct Bit {
  uint32_t value;
  const char* name;
};
constexpr Bit form_names[] = {{function, "function"},
                              {method, "method"},
                              {inplace, "inplace"},
                              {out, "out"},
                              {functional, "functional"}};
constexpr Bit flag_names[] = {{random, "random"},
                              {shape_from_data, "shape_from_data"},
                              {handles_conj, "handles_conj"},
                              {nondeterministic, "nondeterministic"},
                              {linear, "linear"},
                              {geometry_only, "geometry_only"},
                              {factory, "factory"},
                              {same_object, "same_object"},
                              {pointwise, "pointwise"},
                              {no_version_bump, "no_version_bump"},
                              {cross_device, "cross_device"}};
// Operators with the same batching rule treat dimensions alike.
struct Family {
  BatchRule rule;
  const char* name;
};
constexpr Family families[] = {{batch::pointwise, "pointwise"},
                               {batch::dims, "dims"},
                               {batch::dims_of_self, "dims_of_self"},
                               {batch::reduction, "reduction"},
                               {batch::leading, "leading"},
                               {batch::permutation, "permutation"},
                               {batch::new_dim, "new_dim"},
                               {batch::sizes, "sizes"},
                               {batch::list_dims, "list_dims"},
                               {batch::list_new_dim, "list_new_dim"},
                               {batch::view_geometry, "view_geometry"},
                               {batch::fold1d, "fold1d"},
                               {batch::fold2d, "fold2d"},
                               {batch::fold3d, "fold3d"}};

const char* family_name(BatchRule rule) {
  for (const Family& f : families)
    if (rule && f.rule == rule) return f.name;
  return "";
}

template <size_t N>
Object names_of(uint32_t bits, const Bit (&table)[N]) {
  Object list = Object::take(PyList_New(0));
  for (const Bit& b : table)
    if (bits & b.value) checked(PyList_Append(list.get(), string(b.name).get()));
  return list;
}

Object names_of(const Names& names) {
  Object list = Object::take(PyList_New(0));
  for (std::string_view n : names.list)
    if (!n.empty()) checked(PyList_Append(list.get(), string(n).get()));
  return list;
}

const char* composite_name(Composite c) {
  switch (c) {
    case Composite::No:
      return "";
    case Composite::Implicit:
      return "implicit";
    case Composite::Explicit:
      return "explicit";
    case Composite::Selecting:
      return "selecting";
  }
  return "";
}

const char* autocast_name(Autocast a) {
  switch (a) {
    case Autocast::None:
    case Autocast::Same:
      return "";
    case Autocast::LowerPrecision:
      return "lower_precision";
    case Autocast::Float32:
      return "float32";
    case Autocast::Promote:
      return "promote";
  }
  return "";
}

bool has_derivative(const OpRecord& r) {
  for (const Derivative& d : r.derivatives)
    if (d.local || d.vjp || d.fused) return true;
  return false;
}

// Whether forward mode works: by a rule, because it is a view or linear, or by its derivatives.
bool has_forward_mode(const OpRecord& r, const OpInfo& info) {
  return r.jvp || info.view || (r.flags & (linear | geometry_only)) || has_derivative(r);
}

// Whether vmap has a rule for it. In-place changes of geometry use the rule of their view.
bool has_batching(const OpRecord& r, const OpInfo& info) {
  return r.batch || info.view || (r.flags & pointwise) || *r.view_form;
}

void put(const Object& dict, const char* key, const Object& value) {
  checked(PyDict_SetItemString(dict.get(), key, value.get()));
}

// What its record tells of any variant of an operator.
Object properties(const Operator& op) {
  const OpRecord& r = *op.record;
  Object d = Object::take(PyDict_New());
  put(d, "flags", names_of(r.flags, flag_names));
  put(d, "family", string(family_name(r.batch)));
  put(d, "dims", names_of(r.dims));
  put(d, "sizes", names_of(r.sizes));
  put(d, "view", boolean(op.info().view));
  return d;
}

Object properties_of(PyObject*, PyObject* overload) {
  if (!PyObject_TypeCheck(overload, &overload_type))
    throw Error(ErrorKind::Type, "_properties(): expected an OpOverload");
  return properties(*packet_of(overload).only);
}

Object facts(const OperatorEntry& entry) {
  const OpRecord& r = *entry.op->record;
  const OpInfo& info = entry.op->info();
  Object d = properties(*entry.op);
  put(d, "name", string(entry.name));
  put(d, "overload", string(entry.overload));
  put(d, "schema", string(info.schema.str()));
  put(d, "doc", string(r.doc));
  put(d, "forms", names_of(r.forms, form_names));
  put(d, "python_module", string(r.python_module));
  put(d, "aliases", string(r.aliases));
  put(d, "composite", string(composite_name(r.composite)));
  put(d, "autocast", string(autocast_name(r.autocast)));
  put(d, "autocast_cpu", string(autocast_name(cpu_autocast(r))));
  put(d, "numbers", names_of(r.numbers));
  put(d, "not_differentiable", names_of(r.not_differentiable));
  put(d, "hole", string(r.hole));
  put(d, "tensor_inputs", boolean(info.tensor_args != 0 || info.list_args != 0));
  put(d, "meta", boolean(r.meta != nullptr));
  put(d, "cpu", boolean(static_cast<bool>(r.cpu)));
  put(d, "any", boolean(static_cast<bool>(r.any)));
  put(d, "vjp", boolean(has_derivative(r)));
  put(d, "jvp", boolean(has_forward_mode(r, info)));
  put(d, "batch", boolean(has_batching(r, info)));
  return d;
}

Object operator_table(PyObject*) {
  Object list = Object::take(PyList_New(0));
  for (const OperatorEntry& entry : builtin_operators()) {
    const OpRecord& r = *entry.op->record;
    const bool primary = entry.op->variant == Variant::Base;
    if (primary && r.schema) checked(PyList_Append(list.get(), facts(entry).get()));
  }
  return list;
}

PyMethodDef functions[] = {
    {"_properties", guarded<properties_of>, METH_O,
     "_properties(overload) -> dict: what the record of an operator tells of its dimensions."},
    {"_operator_table", guarded_nullary<operator_table>, METH_NOARGS,
     "_operator_table() -> list of dicts: the facts of each operator record of this build."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_operator_table(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
