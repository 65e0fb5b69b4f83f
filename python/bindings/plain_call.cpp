#include "plain_call.h"

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

}  // namespace

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
