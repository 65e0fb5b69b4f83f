#include "operators.h"

namespace facula::python {

const Operator& NamedOperator::get() {
  if (op_) return *op_;
  op_ = find_operator("aten", name_, overload_);
  if (!op_)
    throw Error(ErrorKind::NotImplemented, "facula has no operator aten::", name_,
                *overload_ ? "." : "", overload_, " in this build");
  return *op_;
}

void NamedOperator::run(std::initializer_list<Value> given, Value* results) {
  const Operator& op = get();
  const OpInfo& info = op.info();
  union Room {
    Room() {}  // as many are made as the operator has
    Value args[32];
  } room;
  size_t i = 0;
  for (const Value& v : given) new (room.args + i++) Value(v);
  for (; i < info.args; ++i) new (room.args + i) Value(default_value(info.schema.args[i]));
  call(op, room.args, results);
}

Tensor NamedOperator::tensor(std::initializer_list<Value> args) {
  ResultSlots r(get().info().results);
  run(args, r.slots);
  return take_tensor(r.slots[0]);
}

std::vector<Tensor> NamedOperator::tensors(std::initializer_list<Value> args) {
  ResultSlots r(get().info().results);
  run(args, r.slots);
  return take_tensors(r.slots[0]);
}

Scalar item_by_operator(const Tensor& t) {
  static NamedOperator item("_local_scalar_dense");
  Results<1> r;
  item.run({pack(t)}, r.slots);
  return r.slots[0].as_scalar();
}

}  // namespace facula::python
