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
  if (p.tensor && is_exact_tensor(o)) {
    v = Value::of_tensor(impl_of(o));
    return v.tag == Tag::Tensor && v.tensor->numel <= most;
  }
  if (!p.integer || !PyLong_CheckExact(o)) return false;
  int overflow = 0;
  v = Value::of_int(long_value(o, overflow));
  return overflow == 0;
}

}  // namespace

PyObject* try_plain_call(const Signature& s, const Given& given) {
  constexpr size_t most_given = 3;
  const size_t n = given.positional;
  if (!s.plain || given.keywords || n == 0 || n > most_given || n < s.required ||
      n > s.positional || function_mode_active())
    return nullptr;
  union Room {  // filling it with nothing would cost more than the rest of this function
    Value values[most_plain_args];
    Room() {}
  } room;
  Value read[most_given];
  const int64_t most = long_call_elements(*s.op);
  for (size_t i = 0; i < n; ++i)
    if (!read_plain(s.parameters[i], given.args[i], most, read[i])) return nullptr;
  Value* args = room.values;
  std::uninitialized_copy(s.defaults.begin(), s.defaults.end(), args);
  for (size_t i = 0; i < n; ++i) args[s.parameters[i].index] = read[i];
  Results<1> r;
  call(*s.op, args, r.slots);
  if (r.slots[0].is_tensor()) return wrap(take_tensor(r.slots[0]));
  return result_object(r.slots[0]).leak();
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
  if (is_exact_tensor(o)) {
    v = Value::of_tensor(impl_of(o));
    return v.tag == Tag::Tensor && v.tensor->numel <= most_;
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
