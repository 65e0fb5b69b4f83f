#include "bindings/call/handler_results.h"

#include "bindings/call/arena.h"
#include "bindings/call/convert.h"
#include "bindings/call/parse.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

// The name of a type in errors: "Tensor", "list of Tensors", "int".
std::string expected_text(const SchemaType& type, bool or_none) {
  std::string text = type.str();
  if (type.list && type.kind == TypeKind::Tensor)
    text = type.optional_elements ? "list of Tensors or Nones" : "list of Tensors";
  return or_none ? text + " or None" : text;
}

// Checks and stores one result.
class HandlerResult {
 public:
  // If there are several results, a Tensor may be None, like a gradient that was not needed.
  HandlerResult(const OpCall& c, int index)
      : info_(*c.info),
        type_(info_.schema.results[static_cast<size_t>(index)].type),
        index_(index),
        written_(written_argument(c, index)),
        may_be_none_(type_.optional || written_ ||
                     (info_.results > 1 && !type_.list && type_.kind == TypeKind::Tensor)) {}

  void read(PyObject* o, Value& slot) const {
    try {
      convert(o, slot);
    } catch (const Error& e) {
      // Exceptions from Python, such as one of __index__, are passed on unchanged.
      if (e.kind() == ErrorKind::Python || e.kind() == ErrorKind::Runtime) throw;
      throw Error(ErrorKind::Runtime, refusal(), ": ", e.what());
    }
  }

 private:
  void convert(PyObject* o, Value& slot) const {
    if (o == Py_None && may_be_none_) return set_result(slot, written_ ? *written_ : Tensor());
    if (type_.list && type_.kind == TypeKind::Tensor) return read_tensors(o, slot);
    if (type_.list) return read_other(o, slot);
    switch (type_.kind) {
      case TypeKind::Tensor:
        if (!is_tensor(o)) refuse(o);
        return set_result(slot, tensor_of(o));
      case TypeKind::Int:
      case TypeKind::SymInt:
        return read_as(o, read_int, slot);
      case TypeKind::Float:
      case TypeKind::SymFloat:
        return read_as(o, read_float, slot);
      case TypeKind::Bool:
      case TypeKind::SymBool:
        return read_as(o, read_bool, slot);
      case TypeKind::Scalar:
      case TypeKind::Complex:
        return read_scalar_result(o, slot);
      default:
        return read_other(o, slot);
    }
  }

  // The argument that the result is, if the operator writes it; else null.
  static const Tensor* written_argument(const OpCall& c, int index) {
    const int from = c.info->alias_of[index];
    const bool written = from >= 0 && (c.info->mutated >> from & 1) && c.args[from].is_tensor();
    return written ? &c.args[from].as_tensor() : nullptr;
  }

  // "aten::add(): Unable to cast what a Python handler returned as result 'out'"
  [[gnu::cold]] std::string refusal() const {
    const Schema& s = info_.schema;
    const std::string& name = s.results[static_cast<size_t>(index_)].name;
    std::string which = s.results.size() == 1 ? "" : concat(" as result ", index_);
    if (!name.empty())
      which += concat(which.empty() ? " as result '" : " ('", name, which.empty() ? "'" : "')");
    return concat(s.ns, "::", s.name, "(): Unable to cast what a Python handler returned", which);
  }
  [[noreturn, gnu::cold]] void refuse(PyObject* o) const {
    throw Error(ErrorKind::Runtime, refusal(), ": expected ", expected_text(type_, may_be_none_),
                "; got ", came_text(o));
  }
  // Describes the object, with the first element that does not fit.
  std::string came_text(PyObject* o) const {
    if (!type_.list || !(PyList_Check(o) || PyTuple_Check(o))) return type_name(o);
    const Object items = Object::take(PySequence_Tuple(o));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      if (PyObject* item = PyTuple_GET_ITEM(items.get(), i); !fits_element(item))
        return concat("a ", type_name(o), " with ", type_name(item), " at position ", i);
    return type_name(o);
  }
  bool fits_element(PyObject* o) const {
    if (type_.kind == TypeKind::Tensor)
      return is_tensor(o) || (o == Py_None && type_.optional_elements);
    SchemaType element = type_;
    element.list = false;
    element.optional = type_.optional_elements;
    Parsed scratch;
    Value v;
    return read_value(element, false, o, v, scratch);
  }

  // Accepts numbers of Python and NumPy, but no tensors: reading one would call an operator here.
  template <class T>
  void read_as(PyObject* o, bool (*read)(PyObject*, T&), Value& slot) const {
    T v{};
    if (is_tensor(o) || !read(o, v)) refuse(o);
    set_result(slot, v);
  }
  void read_scalar_result(PyObject* o, Value& slot) const {
    Arena arena;
    Value v;
    if (!read_number(o, v, arena)) refuse(o);
    if (v.tag == Tag::Complex) return set_result(slot, Scalar(*v.complex));
    clear(slot);
    slot = v;
  }

  void read_tensors(PyObject* o, Value& slot) const {
    if (!PyList_Check(o) && !PyTuple_Check(o)) refuse(o);
    std::vector<Tensor> list;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      if (!fits_element(item)) refuse(o);
      list.push_back(item == Py_None ? Tensor() : tensor_of(item));
    }
    set_result(slot, std::move(list));
  }

  // Other types are converted as the parser converts arguments.
  void read_other(PyObject* o, Value& slot) const {
    Parsed parsed;
    Value v;
    if (!read_value(type_, false, o, v, parsed)) refuse(o);
    set_result_copy(slot, v);
  }

  const OpInfo& info_;
  const SchemaType& type_;
  const int index_;
  const Tensor* const written_;
  const bool may_be_none_;
};

[[noreturn, gnu::cold]] void refuse_count(const OpInfo& info, const std::string& came) {
  throw Error(ErrorKind::Runtime, info.schema.ns, "::", info.schema.name,
              "(): Unable to cast what a Python handler returned: expected ",
              info.results ? concat("a tuple of ", int{info.results}, " results") : "None",
              "; got ", came);
}

}  // namespace

void store_results(OpCall& c, PyObject* returned) {
  const OpInfo& info = *c.info;
  if (info.results == 0) {
    if (returned != Py_None) refuse_count(info, type_name(returned));
    return;
  }
  if (info.results == 1) return HandlerResult(c, 0).read(returned, c.results[0]);
  if (!PyTuple_Check(returned) && !PyList_Check(returned)) refuse_count(info, type_name(returned));
  // Copies a list, since reading a number may run Python code that changes it.
  const Object items = Object::take(PySequence_Tuple(returned));
  const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
  if (count != info.results) refuse_count(info, concat(type_name(returned), " of ", count));
  for (int i = 0; i < info.results; ++i)
    HandlerResult(c, i).read(PyTuple_GET_ITEM(items.get(), i), c.results[i]);
}

}  // namespace facula::python
