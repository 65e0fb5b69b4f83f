#include "plain_call.h"

#include <memory>

#include "convert.h"

namespace facula::python {
namespace {

constexpr int most_args = 4;

bool plain_default(const Argument& a) {
  return a.has_default &&
         (a.type.kind == TypeKind::Scalar || a.default_value.kind == Default::None);
}

// Two Tensor arguments, and nothing else that a caller must give.
bool fits(const Operator& op) {
  if (op.variant != Variant::Base && op.variant != Variant::Inplace) return false;
  const OpInfo& info = op.info();
  if (info.args < 2 || info.args > most_args || (info.tensor_args & 3) != 3 || info.results != 1)
    return false;
  for (int i = 2; i < info.args; ++i)
    if (!plain_default(info.schema.args[static_cast<size_t>(i)])) return false;
  return true;
}

// One argument as its parameter takes it; numbers that the parser would convert are left to it.
bool read_plain(const Parameter& p, PyObject* o, int64_t most, Value& v) {
  if (TensorImpl* t = p.tensor ? plain_impl(o) : nullptr) {
    v = Value::of_tensor(t);
    return t->numel <= most;
  }
  if (!p.integer || !PyLong_CheckExact(o)) return false;
  int overflow = 0;
  v = Value::of_int(long_value(o, overflow));
  return overflow == 0;
}

// Arguments of the operator on their way: filling the room with nothing would cost more than the
// rest.
class Arguments {
 public:
  explicit Arguments(const Signature& s) : signature_(s) {
    std::uninitialized_copy(s.defaults.begin(), s.defaults.end(), room_.values);
  }
  Value& of(size_t parameter) { return room_.values[signature_.parameters[parameter].index]; }
  PyObject* call() {
    Results<1> r;
    facula::call(*signature_.op, room_.values, r.slots);
    if (r.slots[0].is_tensor()) return wrap(take_tensor(r.slots[0]));
    return result_object(r.slots[0]).leak();
  }

 private:
  const Signature& signature_;
  union Room {
    Value values[most_plain_args];
    Room() {}
  } room_;
};

// softmax(x, 1), x.add_(y)
PyObject* try_arguments(const Signature& s, const Given& given) {
  constexpr size_t most_given = 3;
  const size_t n = given.positional;
  if (n == 0 || n > most_given || n < s.required || n > s.positional) return nullptr;
  Value read[most_given];
  const int64_t most = long_call_elements(*s.op);
  for (size_t i = 0; i < n; ++i)
    if (!read_plain(s.parameters[i], given.args[i], most, read[i])) return nullptr;
  Arguments args(s);
  for (size_t i = 0; i < n; ++i) args.of(i) = read[i];
  return args.call();
}

// view(2, 3), zeros((2, 3)): ints that are one list, spelled out or not.
PyObject* try_ints(const Signature& s, const Given& given) {
  constexpr size_t most_given = 6;
  const size_t own = s.style == Style::Method ? 1 : 0;
  if (given.positional <= own || s.parameters[own].type().list_size > 1) return nullptr;
  PyObject* const* items = given.args + own;
  size_t n = given.positional - own;
  if (n == 1 && (PyTuple_CheckExact(*items) || PyList_CheckExact(*items))) {
    n = static_cast<size_t>(PySequence_Fast_GET_SIZE(*items));
    items = PySequence_Fast_ITEMS(*items);
  }
  if (n > most_given) return nullptr;
  Value self;
  if (own && !read_plain(s.parameters[0], given.args[0], long_call_elements(*s.op), self))
    return nullptr;
  int64_t ints[most_given];
  for (size_t i = 0; i < n; ++i) {
    int overflow = 0;
    if (!PyLong_CheckExact(items[i])) return nullptr;
    ints[i] = long_value(items[i], overflow);
    if (overflow) return nullptr;
  }
  if (!own && makes_from_sizes(*s.info) && product_exceeds({ints, n}, long_call_elements(*s.op)))
    return nullptr;
  Arguments args(s);
  if (own) args.of(0) = self;
  args.of(own) = pack(IntSpan(ints, n));
  return args.call();
}

}  // namespace

PyObject* try_plain_call(const Signature& s, const Given& given) {
  if (!s.plain || given.keywords || function_mode_active()) return nullptr;
  return s.varargs ? try_ints(s, given) : try_arguments(s, given);
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
  Results<1> r;
  call(*op_, args, r.slots);
  return wrap(take_tensor(r.slots[0]));
}

}  // namespace facula::python
