#include "bindings/call/plain_call.h"

#include <memory>

#include "bindings/call/convert.h"
#include "dispatch/backend.h"

namespace facula::python {
namespace {

constexpr int most_args = 4;

bool plain_default(const Argument& a) {
  return a.has_default &&
         (a.type.kind == TypeKind::Scalar || a.default_value.kind == Default::None);
}

// Whether the operator has two Tensor arguments and no other required ones.
bool fits(const Operator& op) {
  if (op.variant != Variant::Base && op.variant != Variant::Inplace) return false;
  const OpInfo& info = op.info();
  if (info.args < 2 || info.args > most_args || (info.tensor_args & 3) != 3 || info.results != 1)
    return false;
  for (int i = 2; i < info.args; ++i)
    if (!plain_default(info.schema.args[static_cast<size_t>(i)])) return false;
  return true;
}

// A buffer for a short list of ints.
struct FewInts {
  static constexpr size_t most = 6;
  int64_t ints[most];
  size_t count;

  bool read_one(PyObject* o) {
    int overflow = 0;
    ints[0] = long_value(o, overflow);
    count = 1;
    return overflow == 0;
  }
  bool read(PyObject* const* items, size_t n) {
    if (n > most) return false;
    count = n;
    for (size_t i = 0; i < n; ++i) {
      int overflow = 0;
      if (!PyLong_CheckExact(items[i])) return false;
      ints[i] = long_value(items[i], overflow);
      if (overflow) return false;
    }
    return true;
  }
  bool read_list(PyObject* o) {
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
    return read(PySequence_Fast_ITEMS(o), static_cast<size_t>(PySequence_Fast_GET_SIZE(o)));
  }
  Value value() const { return pack(IntSpan(ints, count)); }
};

// Converts one argument; false if only the parser can. A list of ints is stored in `room`.
bool read_plain(const Parameter& p, PyObject* o, int64_t most, Value& v, FewInts& room) {
  if (TensorImpl* t = p.tensor ? plain_impl(o) : nullptr) {
    v = Value::of_tensor(t);
    return t->numel <= most;
  }
  if (PyLong_CheckExact(o)) {
    if (!(p.integer || p.one_int || p.scalar) || !room.read_one(o)) return false;
    v = p.one_int ? room.value() : Value::of_int(room.ints[0]);
    return true;
  }
  if (o == Py_None) {
    v = Value();
    return p.type().optional;
  }
  if (PyBool_Check(o)) {
    v = Value::of_bool(o == Py_True);
    return p.boolean;
  }
  if (PyFloat_CheckExact(o)) {
    v = Value::of_float(PyFloat_AS_DOUBLE(o));
    return p.floating || p.scalar;
  }
  if (!p.integers || !room.read_list(o)) return false;
  v = room.value();
  return true;
}

// The one result of a call whose arguments the caller keeps.
class OneResult {
 public:
  OneResult(const OpInfo& info, const Value* args) {
    const int from = info.alias_of[0];
    if (from >= 0 && (info.mutated >> from & 1) && may_lend(args[from]))
      r_.slots[0].spare = lends_argument;
  }
  Value* slots() { return r_.slots; }
  PyObject* object() {
    Value& v = r_.slots[0];
    if (!v.is_tensor()) return result_object(v).leak();
    if (v.owned) return wrap(take_tensor(v));
    PyObject* known = scheme::object_of(*v.tensor);
    return known ? known : wrap(Tensor(v.as_tensor()));
  }

 private:
  // Whether no layer can replace the tensor by another (see lends_argument).
  static bool may_lend(const Value& v) {
    return v.is_tensor() && (v.tensor->layers - backend_layers).empty() &&
           thread_state.include.empty();
  }
  Results<1> r_;
};

// The arguments of the operator, left uninitialised at first, since initialising all of them would
// take longer than the rest of the call.
class Arguments {
 public:
  explicit Arguments(const Signature& s) : signature_(s) {
    std::uninitialized_copy(s.defaults.begin(), s.defaults.end(), room_.values);
  }
  Value& of(size_t parameter) { return room_.values[signature_.parameters[parameter].index]; }
  PyObject* call() { return call(*signature_.op); }
  PyObject* call_into(Value out) {
    room_.values[signature_.defaults.size()] = out;
    return call(*signature_.out_op);
  }

 private:
  PyObject* call(const Operator& op) {
    OneResult r(op.info(), room_.values);
    facula::call(op, room_.values, r.slots());
    return r.object();
  }

  const Signature& signature_;
  union Room {
    Value values[most_plain_args + 1];
    Room() {}
  } room_;
};

PyObject* out_word() {
  static PyObject* const kept = PyUnicode_InternFromString("out");
  return kept;
}

// softmax(x, 1), x.add_(y), x.sum(1, keepdim=True), add(x, y, out=z)
PyObject* try_arguments(const Signature& s, const Given& given) {
  constexpr size_t most_given = 8;
  const size_t n = given.positional, all = n + given.keyword_count();
  if (n == 0 || all > most_given || n > s.positional) return nullptr;
  const int64_t most = long_call_elements(*s.op);
  Arguments args(s);
  union Room {
    FewInts lists[most_given];
    Room() {}
  } room;
  Value out;
  uint64_t seen = 0;
  for (size_t i = 0; i < all; ++i) {
    PyObject* o = given.args[i];
    if (i >= n && given.keyword(i - n) == out_word()) {
      TensorImpl* t = s.out_op ? plain_impl(o) : nullptr;
      if (!t || t->numel > most) return nullptr;
      out = Value::of_tensor(t);
      continue;
    }
    const size_t at = i < n ? i : s.place_of(given.keyword(i - n));
    if (at == Signature::nowhere || seen >> at & 1) return nullptr;
    if (!read_plain(s.parameters[at], o, most, args.of(at), room.lists[i])) return nullptr;
    seen |= uint64_t{1} << at;
  }
  if (s.all_required & ~seen) return nullptr;
  return out.is_tensor() ? args.call_into(out) : args.call();
}

// The tensors of a list, with references of their own since the list may change.
class KeptList {
 public:
  explicit KeptList(PyObject* list) {
    const auto n = static_cast<size_t>(PySequence_Fast_GET_SIZE(list));
    if (n > most) return;
    PyObject** items = PySequence_Fast_ITEMS(list);
    for (size_t i = 0; i < n; ++i) {
      tensors_[i] = plain_impl(items[i]);
      if (!tensors_[i]) return;
      objects_[kept_++] = Py_NewRef(items[i]);
    }
    whole_ = n > 0;
  }
  KeptList(const KeptList&) = delete;
  ~KeptList() {
    for (size_t i = 0; i < kept_; ++i) Py_DECREF(objects_[i]);
  }
  bool is_whole() const { return whole_; }
  std::span<const Tensor> tensors() const {
    static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
    return {reinterpret_cast<const Tensor*>(tensors_), kept_};
  }

 private:
  static constexpr size_t most = 8;
  TensorImpl* tensors_[most];
  PyObject* objects_[most];
  size_t kept_ = 0;
  bool whole_ = false;
};

// cat([x, y], 1)
PyObject* try_list(const Signature& s, const Given& given) {
  const size_t n = given.positional;
  if (n == 0 || n > 2 || given.keywords || n > s.positional || s.all_required >> n) return nullptr;
  PyObject* list = given.args[0];
  if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) return nullptr;
  const KeptList kept(list);
  if (!kept.is_whole()) return nullptr;
  const int64_t most = long_call_elements(*s.op);
  for (const Tensor& t : kept.tensors())
    if (t.numel() > most) return nullptr;
  Arguments args(s);
  FewInts room;
  if (n == 2 && !read_plain(s.parameters[1], given.args[1], most, args.of(1), room)) return nullptr;
  args.of(0) = pack(kept.tensors());
  return args.call();
}

// view(2, 3), zeros((2, 3)): one list of ints, which may be given as several arguments.
PyObject* try_ints(const Signature& s, const Given& given) {
  const size_t own = s.style == Style::Method ? 1 : 0;
  if (given.positional <= own || given.keywords || s.parameters[own].type().list_size > 1)
    return nullptr;
  PyObject* const* items = given.args + own;
  const size_t n = given.positional - own;
  const int64_t most = long_call_elements(*s.op);
  FewInts list, room;
  if (!(n == 1 && list.read_list(*items)) && !list.read(items, n)) return nullptr;
  const IntSpan ints(list.ints, list.count);
  if (!own && makes_from_sizes(*s.info) && product_exceeds(ints, most)) return nullptr;
  Arguments args(s);
  if (own && !read_plain(s.parameters[0], given.args[0], most, args.of(0), room)) return nullptr;
  args.of(own) = pack(ints);
  return args.call();
}

}  // namespace

PyObject* try_plain_call(const Signature& s, const Given& given) {
  if (!s.plain || s.parameters.empty() || function_mode_active()) return nullptr;
  if (s.varargs) return try_ints(s, given);
  return s.parameters[0].tensors ? try_list(s, given) : try_arguments(s, given);
}

PlainBinary::PlainBinary(const char* name) {
  for (const Operator* op : find_overloads("aten", name)) {
    if (!fits(*op)) continue;
    op_ = op;
    most_ = long_call_elements(*op);
    const OpInfo& info = op->info();
    for (size_t i = 0; i < 2; ++i) numbers_[i] = op->record->numbers.has(info.schema.args[i].name);
    for (int i = 2; i < info.args; ++i)
      rest_[i - 2] = default_value(info.schema.args[static_cast<size_t>(i)]);
    return;
  }
}

bool PlainBinary::read(PyObject* o, int operand, Value& v) const {
  if (TensorImpl* t = plain_impl(o)) {
    v = Value::of_tensor(t);
    return t->numel <= most_;
  }
  if (!numbers_[operand]) return false;
  if (PyFloat_CheckExact(o)) {
    v = Value::of_float(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  v = Value::of_int(long_value(o, overflow));
  return overflow == 0;
}

PyObject* PlainBinary::try_call(PyObject* a, PyObject* b) const {
  if (!op_ || function_mode_active()) return nullptr;
  Value args[most_args];
  if (!read(a, 0, args[0]) || !read(b, 1, args[1])) return nullptr;
  args[2] = rest_[0];
  args[3] = rest_[1];
  OneResult r(op_->info(), args);
  call(*op_, args, r.slots());
  return r.object();
}

}  // namespace facula::python
