#include "bindings/call/parse.h"

#include <memory>

#include "bindings/call/containers.h"
#include "bindings/call/convert.h"
#include "bindings/call/old_order.h"
#include "bindings/call/parse_errors.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

bool read_tensor(bool accepts_number, PyObject* o, Value& out, Parsed& into) {
  if (TensorImpl* t = plain_impl(o)) {
    out = Value::of_tensor(t);
    return true;
  }
  if (is_tensor(o)) {
    note_overloaded(o, into.overloaded);
    out = pack(tensor_of(o));
    return true;
  }
  if (accepts_number && read_number(o, out, into.arena)) return true;
  if (!has_override(o)) return false;
  note_overloaded(o, into.overloaded);
  out = Value();
  return true;
}

bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }
size_t length_of(PyObject* list) { return static_cast<size_t>(PySequence_Fast_GET_SIZE(list)); }

// The items of a list or tuple; null for other objects. Valid only until Python code runs.
PyObject** items_of(PyObject* o, size_t& n) {
  static PyObject* nothing;
  if (!PyList_Check(o) && !PyTuple_Check(o)) return nullptr;
  n = static_cast<size_t>(PySequence_Fast_GET_SIZE(o));
  return n ? PySequence_Fast_ITEMS(o) : &nothing;  // an empty list has no array
}

bool read_tensors(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  size_t n = 0;
  PyObject** items = items_of(o, n);
  if (!items) return false;
  PyObject* const* kept = into.arena.keep(items, n);
  auto** list = into.arena.room<TensorImpl*>(n);
  for (size_t i = 0; i < n; ++i) {
    list[i] = nullptr;
    if (kept[i] == Py_None && type.optional_elements) continue;
    Value v;
    if (!read_tensor(false, kept[i], v, into)) return false;
    if (v.is_tensor()) list[i] = v.tensor;
  }
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
  out = pack(std::span<const Tensor>(reinterpret_cast<const Tensor*>(list), n));
  return true;
}

[[noreturn, gnu::cold]] void throw_too_big(size_t position) {
  throw_type(concat("failed to unpack the object at pos ", position + 1,
                    " with error \"Overflow when unpacking long long\""));
}

// Converts one item of a list of ints. An int that is too large does not fit, as in PyTorch.
inline bool read_element(PyObject* o, size_t position, int64_t& out) {
  // PyTorch tells a list of ints by its first item, and takes a bool as a number after that.
  if (position > 0 && PyBool_Check(o)) {
    out = o == Py_True;
    return true;
  }
  if (!PyLong_CheckExact(o)) return read_int(o, out);
  int overflow = 0;
  out = long_value(o, overflow);
  if (overflow) throw_too_big(position);
  return true;
}

bool read_ints(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  if (!is_list(o)) {
    int64_t one;
    if (type.list_size < 1 || !read_int(o, one)) return false;
    const auto n = static_cast<size_t>(type.list_size);
    int64_t* list = into.arena.room<int64_t>(n);
    std::fill_n(list, n, one);
    out = pack(IntSpan(list, n));
    return true;
  }
  const size_t n = length_of(o);
  int64_t* list = into.arena.room<int64_t>(n);
  out = pack(IntSpan(list, n));
  return read_items(o, [&](size_t i, PyObject* item) { return read_element(item, i, list[i]); });
}

bool read_floats(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  double one = 0;
  const bool many = is_list(o);
  if (!many && (type.list_size < 1 || !read_float(o, one))) return false;
  const size_t n = many ? length_of(o) : static_cast<size_t>(type.list_size);
  double* list = into.arena.room<double>(n);
  std::fill_n(list, n, one);
  out = pack(std::span<const double>(list, n));
  return !many ||
         read_items(o, [&](size_t i, PyObject* item) { return read_float(item, list[i]); });
}

bool read_bools(PyObject* o, Value& out, Parsed& into) {
  if (!is_list(o)) return false;
  const size_t n = length_of(o);
  bool* list = into.arena.room<bool>(n);
  out = pack(std::span<const bool>(list, n));
  return read_items(o, [&](size_t i, PyObject* item) { return read_bool(item, list[i]); });
}

bool read_values(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  size_t n = 0;
  PyObject** items = items_of(o, n);
  if (!items) return false;
  // The values borrow texts and lists from the items, so these are kept until the call is over.
  PyObject* const* kept = into.arena.keep(items, n);
  SchemaType element = type;
  element.list = false;
  element.optional = type.optional_elements;
  Value* list = into.arena.room<Value>(n);
  for (size_t i = 0; i < n; ++i)
    if (!read_value(element, false, kept[i], list[i], into)) return false;
  out = pack(std::span<const Value>(list, n));
  return true;
}

bool read_list(const SchemaType& type, PyObject* o, Value& out, Parsed& into) {
  switch (type.kind) {
    case TypeKind::Tensor:
      return read_tensors(type, o, out, into);
    case TypeKind::Int:
    case TypeKind::SymInt:
      return read_ints(type, o, out, into);
    case TypeKind::Float:
      return read_floats(type, o, out, into);
    case TypeKind::Bool:
      return read_bools(o, out, into);
    default:
      return read_values(type, o, out, into);
  }
}

// Accepts an UntypedStorage, or a TypedStorage with the dtype of the first argument, a tensor.
bool read_storage(PyObject* o, Value& out, Parsed& into) {
  if (is_storage(o)) {
    out = pack(storage_value(o));
    return true;
  }
  static PyObject* const typed = imported("facula.storage", "TypedStorage").leak();
  if (!PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(typed))) return false;
  const Object untyped = attribute(o, "_untyped_storage"), dtype = attribute(o, "dtype");
  if (!is_storage(untyped.get()) || !is_dtype(dtype.get())) return false;
  const Value& self = into.args()[0];
  check(!self.is_tensor() || self.tensor->dtype == dtype_value(dtype.get()),
        "Expected a Storage of type ", self.is_tensor() ? info(self.tensor->dtype).legacy_name : "",
        " or an UntypedStorage, but got type ", info(dtype_value(dtype.get())).legacy_name,
        " for argument 1 'storage'");
  out = pack(storage_value(untyped.get()));  // the TypedStorage keeps it alive
  return true;
}

bool read_word(const SchemaType& type, PyObject* o, Value& out) {
  switch (type.kind) {
    case TypeKind::ScalarType: {
      const DType d = dtype_like(o);
      out = pack(d);
      return d != DType::Undefined;
    }
    case TypeKind::Layout:
      if (!is_layout(o)) return false;
      out = pack(layout_value(o));
      return true;
    case TypeKind::MemoryFormat:
      if (!is_memory_format(o)) return false;
      out = pack(memory_format_value(o));
      return true;
    case TypeKind::Device: {
      Device d;
      if (!device_like(o, d)) return false;
      out = pack(d);
      return true;
    }
    case TypeKind::Generator:
      if (!is_generator(o)) return false;
      out = pack(generator_value(o));
      return true;
    case TypeKind::Str:
      if (!PyUnicode_Check(o)) return false;
      out = pack(text_of(o));
      return true;
    default:
      return false;
  }
}

}  // namespace

bool read_value(const SchemaType& type, bool accepts_number, PyObject* o, Value& out,
                Parsed& into) {
  if (o == Py_None && type.optional) {
    out = Value();
    return true;
  }
  if (type.list) return read_list(type, o, out, into);
  switch (type.kind) {
    case TypeKind::Tensor:
      return read_tensor(accepts_number, o, out, into);
    case TypeKind::Storage:
      return read_storage(o, out, into);
    case TypeKind::Int:
    case TypeKind::SymInt: {
      int64_t v;
      if (!read_int(o, v)) return false;
      out = Value::of_int(v);
      return true;
    }
    case TypeKind::Float:
    case TypeKind::SymFloat: {
      double v;
      if (!read_float(o, v)) return false;
      out = Value::of_float(v);
      return true;
    }
    case TypeKind::Bool:
    case TypeKind::SymBool: {
      bool v;
      if (!read_bool(o, v)) return false;
      out = Value::of_bool(v);
      return true;
    }
    case TypeKind::Scalar:
    case TypeKind::Complex:
      return read_scalar(o, out, into.arena);
    case TypeKind::Any:
      out = object_value(o, into.arena);
      return true;
    default:
      return read_word(type, o, out) || read_container(type, o, out, into);
  }
}

namespace {

const Parameter* find_same(const Signature& s, PyObject* name, size_t& at) {
  at = s.place_of(name);
  return at == Signature::nowhere ? nullptr : &s.parameters[at];
}
const Parameter* find_equal(const Signature& s, PyObject* name, size_t& at) {
  for (at = 0; at < s.parameters.size(); ++at) {
    const Parameter& p = s.parameters[at];
    if (PyUnicode_Compare(p.name, name) == 0) return &p;
    for (PyObject* other : p.other_names)
      if (other && PyUnicode_Compare(other, name) == 0) return &p;
  }
  return nullptr;
}

// Keyword arguments that are not in the operator's schema: out= and requires_grad=.
struct Extra {
  const char* text;
  PyObject* interned = nullptr;
  bool is_same(PyObject* name) {
    if (!interned) interned = checked(PyUnicode_InternFromString(text));
    return name == interned;
  }
  bool is_equal(PyObject* name) {
    return is_same(name) || PyUnicode_CompareWithASCIIString(name, text) == 0;
  }
};
Extra out_word{"out"}, requires_grad_word{"requires_grad"};

// One attempt to fit the arguments to one signature.
class Fit {
 public:
  Fit(const Signature& s, const Given& g, Parsed& into) : s_(s), given_(g), into_(into) {}

  Misfit run() {
    std::uninitialized_copy(s_.defaults.begin(), s_.defaults.end(), into_.args());
    into_.op = s_.op;
    size_t taken = given_.positional;
    const bool spelled_out = taken > s_.positional;
    if (spelled_out && !take_varargs(taken)) return {Misfit::TooMany};
    const bool short_of = !given_.keywords && taken < s_.required;
    for (size_t i = spelled_out ? taken : 0; i < taken; ++i) {
      const Parameter& p = s_.parameters[i];
      if (!fits(p, given_.args[i], short_of)) {
        if (i == own() && take_varargs(taken)) break;
        return {Misfit::WrongType, i, given_.args[i]};
      }
    }
    if (!given_.keywords) {
      if (taken < s_.required) return {Misfit::Missing, taken};
      return {};
    }
    return run_keywords(taken);
  }

 private:
  size_t own() const { return s_.style == Style::Method ? 1 : 0; }

  bool read(const Parameter& p, PyObject* o) {
    Value& out = into_.args()[p.index];
    if (TensorImpl* t = p.tensor ? plain_impl(o) : nullptr) [[likely]] {
      out = Value::of_tensor(t);
      return true;
    }
    if (p.integer && PyLong_CheckExact(o)) {
      int overflow = 0;
      out = Value::of_int(long_value(o, overflow));
      if (!overflow) return true;
    }
    return read_value(p.type(), p.number, o, out, into_) || stands_for_default(p, o);
  }

  // None stands for a list that is empty by default: `dim` of amax, `stride` of a pool.
  bool stands_for_default(const Parameter& p, PyObject* o) const {
    const Default& d = p.argument->default_value;
    return o == Py_None && s_.style != Style::Schema && p.type().list &&
           (d.kind == Default::EmptyList || (d.kind == Default::IntList && d.ints.empty()));
  }

  // An int that overflows its parameter raises here, unless arguments are missing anyway
  // (`short_of`).
  bool fits(const Parameter& p, PyObject* o, bool short_of) {
    if (!short_of) return read(p, o);
    try {
      return read(p, o);
    } catch (const Error&) {
      return true;
    }
  }

  // view(2, 3): all positional arguments are the items of the one list.
  bool take_varargs(size_t& taken) {
    if (!s_.varargs || given_.positional <= own()) return false;
    const size_t n = given_.positional - own();
    int64_t* list = into_.arena.room<int64_t>(n);
    for (size_t i = 0; i < n; ++i)
      if (!read_element(given_.args[own() + i], i, list[i])) return false;
    if (own() && !read(s_.parameters[0], given_.args[0])) return false;
    into_.args()[s_.parameters[own()].index] = pack(IntSpan(list, n));
    taken = own() + 1;
    return true;
  }

  Misfit run_keywords(size_t taken) {
    uint64_t seen = taken >= 64 ? ~0ull : (1ull << taken) - 1;
    for (size_t k = 0; k < given_.keyword_count(); ++k) {
      PyObject *key = given_.keyword(k), *value = given_.keyword_value(k);
      size_t at = 0;
      const Parameter* p = find_same(s_, key, at);
      if (!p && !is_same_extra(key)) p = find_equal(s_, key, at);
      if (!p) {
        if (!is_extra(key)) return {Misfit::Unexpected, 0, key};
        if (take_extra(key, value)) continue;
        return {Misfit::WrongExtra, 0, value, 0, key};
      }
      if (seen >> at & 1) return {Misfit::Twice, at, key};
      seen |= 1ull << at;
      if (!read(*p, value)) return {Misfit::WrongKeyword, at, value};
    }
    for (size_t i = 0; i < s_.parameters.size(); ++i)
      if (s_.parameters[i].required && !(seen >> i & 1)) return {Misfit::Missing, i, nullptr, seen};
    return {};
  }

  bool is_same_extra(PyObject* key) const {
    return (s_.out_op && out_word.is_same(key)) || (s_.factory && requires_grad_word.is_same(key));
  }
  bool is_extra(PyObject* key) const {
    return (s_.out_op && out_word.is_equal(key)) ||
           (s_.factory && requires_grad_word.is_equal(key));
  }
  bool take_extra(PyObject* key, PyObject* value) {
    if (value == Py_None) return true;
    return out_word.is_equal(key) ? take_out(value) : read_bool(value, into_.requires_grad);
  }

  bool take_out(PyObject* value) {
    const size_t first = s_.info->args, n = s_.info->results;
    const OpInfo& info = s_.out_op->info();
    if (s_.info->results == 1) {
      if (!read_value(info.schema.args[first].type, false, value, into_.args()[first], into_))
        return false;
    } else {
      size_t count = 0;
      PyObject** items = items_of(value, count);
      if (!items || count != n) return false;
      for (size_t i = 0; i < n; ++i)
        if (!read_tensor(false, items[i], into_.args()[first + i], into_)) return false;
    }
    into_.op = s_.out_op;
    return true;
  }

  const Signature& s_;
  const Given& given_;
  Parsed& into_;
};

}  // namespace

void parse(Packet& packet, const Given& given, Parsed& into) {
  const auto& signatures = packet.signatures();
  for (const auto& s : signatures) {
    into.overloaded.clear();
    into.requires_grad = false;
    if (!Fit(*s, given, into).run()) return;
  }
  for (const auto& s : signatures)
    if (const auto old = Reordered::of(*s, given); old && !Fit(*s, old->given(), into).run())
      return old->warn(packet);
  std::vector<Misfit> reasons;
  for (const auto& s : signatures) reasons.push_back(Fit(*s, given, into).run());
  throw_misfit(packet, given, reasons);
}

}  // namespace facula::python
