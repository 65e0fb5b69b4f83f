#include "bindings/call/operators.h"

namespace facula::python {

const Operator& NamedOperator::get() {
  if (op_) return *op_;
  op_ = find_operator("aten", name_, overload_);
  if (!op_)
    throw Error(ErrorKind::NotImplemented, "facula has no operator aten::", name_,
                *overload_ ? "." : "", overload_, " in this build");
  return *op_;
}

void NamedOperator::call_with(std::span<Value> given, Value* results) {
  const Operator& op = get();
  const OpInfo& info = op.info();
  if (given.size() == info.args) return call(op, given.data(), results);
  union Room {
    Room() {}  // only as many are initialised as the operator has arguments
    Value args[32];
  } room;
  size_t i = 0;
  for (const Value& v : given) new (room.args + i++) Value(v);
  for (; i < info.args; ++i) new (room.args + i) Value(default_value(info.schema.args[i]));
  call(op, room.args, results);
}

Tensor NamedOperator::call_for_tensor(std::span<Value> args) {
  ResultSlots r(get().info().results);
  call_with(args, r.slots);
  return take_tensor(r.slots[0]);
}

Scalar item_by_operator(const Tensor& t) {
  static NamedOperator item("_local_scalar_dense");
  Results<1> r;
  item.run({pack(t)}, r.slots);
  return r.slots[0].as_scalar();
}

}  // namespace facula::python
