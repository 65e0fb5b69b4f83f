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
  Value args[32];
  size_t i = 0;
  for (const Value& v : given) args[i++] = v;
  for (; i < info.args; ++i) args[i] = default_value(info.schema.args[i]);
  call(op, args, results);
}

Tensor NamedOperator::tensor(std::initializer_list<Value> args) {
  Results<8> r;
  run(args, r.slots);
  return take_tensor(r.slots[0]);
}

std::vector<Tensor> NamedOperator::tensors(std::initializer_list<Value> args) {
  Results<8> r;
  run(args, r.slots);
  return take_tensors(r.slots[0]);
}

bool needs_operator(const Tensor& t) {
  constexpr LayerSet plain = backend_layers | Layer::Autograd | Layer::Conjugate | Layer::Negative;
  return !((t->layers | thread_state.include) - plain - thread_state.exclude).empty();
}

Scalar item_by_operator(const Tensor& t) {
  static NamedOperator item("_local_scalar_dense");
  Results<8> r;
  item.run({pack(t)}, r.slots);
  return r.slots[0].as_scalar();
}

}  // namespace facula::python
