// Arithmetic with a number, as PyTorch's C++ composites call it. Where a file includes this header,
// `ops::mul(t, 2)` is this overload; its nodes have names of their own (MulBackward1). What users
// write (`t * 2`) is the overload for tensors, which takes numbers as well.
#include "ops/elementwise/arithmetic_numbers.h"

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "ops/elementwise/arithmetic.h"

namespace facula {
namespace {

Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return ops::add(Operand(self), Operand(other), alpha);
}
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return ops::sub(Operand(self), Operand(other), alpha);
}
Tensor mul(const Tensor& self, const Scalar& other) {
  return ops::mul(Operand(self), Operand(other));
}
Tensor div(const Tensor& self, const Scalar& other) {
  return ops::div(Operand(self), Operand(other));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(add_Scalar){
    .schema = "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    .doc = "Self plus alpha times a number.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<add>,
    .derivatives = {vjp("self", [](Backward& b) { return b.grad(); })},
    .node = "AddBackward1",
};
OP(sub_Scalar){
    .schema = "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    .doc = "Self less alpha times a number.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<sub>,
    .derivatives = {vjp("self", [](Backward& b) { return b.grad(); })},
    .node = "SubBackward1",
};
OP(mul_Scalar){
    .schema = "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    .doc = "Self times a number.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<mul>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return ops::mul(b.grad(), b.scalar("other").conj()); })},
    .node = "MulBackward1",
};
OP(div_Scalar){
    .schema = "div.Scalar(Tensor self, Scalar other) -> Tensor",
    .doc = "Self divided by a number.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<div>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return ops::div(b.grad(), b.scalar("other").conj()); })},
    .node = "DivBackward1",
};
