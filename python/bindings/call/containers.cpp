#include "bindings/call/containers.h"

#include "bindings/call/convert.h"

namespace facula::python {
namespace {

// Converts the objects of an array, which the caller keeps alive, each by its type.
template <class TypeOf>
bool read_all(PyObject* const* items, size_t n, TypeOf&& type_of, Value* list, Parsed& into) {
  for (size_t i = 0; i < n; ++i)
    if (!read_value(type_of(i), false, items[i], list[i], into)) return false;
  return true;
}

bool read_tuple(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  const auto& members = type.detail->children;
  if (!PyTuple_Check(o) || static_cast<size_t>(PyTuple_GET_SIZE(o)) != members.size()) return false;
  const size_t n = members.size();
  Value* list = into.arena.room<Value>(n);
  const auto member = [&](size_t i) -> const SchemaType& { return members[i]; };
  if (!read_all(PySequence_Fast_ITEMS(o), n, member, list, into)) return false;
  out = pack(Tag::Tuple, {list, n});
  return true;
}

bool read_dict(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  if (!PyDict_Check(o)) return false;
  // Copies the pairs, since reading an item may run Python code that changes the dict.
  PyObject* pairs = into.arena.keep(Object::take(PyDict_Items(o)));
  const auto n = static_cast<size_t>(PyList_GET_SIZE(pairs));
  Value* list = into.arena.room<Value>(2 * n);
  const auto part = [&](size_t i) -> const SchemaType& { return type.detail->children[i]; };
  for (size_t i = 0; i < n; ++i) {
    PyObject* pair = PyList_GET_ITEM(pairs, static_cast<Py_ssize_t>(i));
    if (!read_all(PySequence_Fast_ITEMS(pair), 2, part, list + 2 * i, into)) return false;
  }
  out = pack(Tag::Dict, {list, 2 * n});
  return true;
}

bool read_union(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  for (const SchemaType& member : type.detail->children)
    if (read_value(member, false, o, out, into)) return true;
  return false;
}

// The name of a class in schemas, after "__torch__.": "module.Class".
std::string full_name(PyTypeObject* type) {
  auto* o = reinterpret_cast<PyObject*>(type);
  const Object module = attribute(o, "__module__"), name = attribute(o, "__qualname__");
  if (!PyUnicode_Check(module.get()) || !PyUnicode_Check(name.get())) return {};
  return concat(text_of(module.get()), ".", text_of(name.get()));
}

// Accepts an object of the class that the schema names, or of a subclass.
bool read_object(const SchemaType& type, PyObject* o, Value& out) {
  std::string_view wanted = type.detail->name;
  constexpr std::string_view prefix = "__torch__.";
  if (wanted.starts_with(prefix)) wanted.remove_prefix(prefix.size());
  PyObject* bases = Py_TYPE(o)->tp_mro;
  for (Py_ssize_t i = 0; bases && i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i));
    if (full_name(base) != wanted) continue;
    out = Value();
    out.tag = Tag::Object;
    out.object = o;
    return true;
  }
  return false;
}

}  // namespace

bool read_container(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  switch (type.kind) {
    case TypeKind::Tuple:
      return read_tuple(type, o, out, into);
    case TypeKind::Dict:
      return read_dict(type, o, out, into);
    case TypeKind::Union:
      return read_union(type, o, out, into);
    case TypeKind::List:  // as an element of another list
      return read_value(type.detail->children[0], false, o, out, into);
    case TypeKind::Class:
      return read_object(type, o, out);
    default:
      return false;
  }
}

Object container_object(const Value& v) {
  if (v.tag == Tag::Tuple) {
    Object tuple = Object::take(PyTuple_New(static_cast<Py_ssize_t>(v.length)));
    for (uint32_t i = 0; i < v.length; ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), value_object(v.values[i]).leak());
    return tuple;
  }
  Object dict = Object::take(PyDict_New());
  for (uint32_t i = 0; i + 1 < v.length; i += 2)
    checked(PyDict_SetItem(dict.get(), value_object(v.values[i]).get(),
                           value_object(v.values[i + 1]).get()));
  return dict;
}

}  // namespace facula::python
