// An extension of facula, complete: squareplus(x, b) = (x + sqrt(x * x + b)) / 2, elementwise.
// It needs facula's headers and library, and nothing of facula's sources.
#include <cmath>

#include "facula/extension.h"

namespace {

using namespace facula::ext;

// What the result is like, without computing it: facula makes it, or takes the one of out=.
void shape(Meta m) {
  const Tensor x = m.tensor(0);
  const bool floating = x.dtype() == FACULA_FLOAT32 || x.dtype() == FACULA_FLOAT64;
  require(floating, FACULA_TYPE_ERROR, "squareplus(): expected float32 or float64");
  m.result(0, x.sizes(), x.dtype());
}

template <class T>
void fill(const Tensor& x, T b, const Tensor& out) {
  const T* from = x.data<T>();
  T* to = out.data<T>();
  for (int64_t i = 0; i < x.numel(); ++i)
    to[i] = (from[i] + std::sqrt(from[i] * from[i] + b)) / 2;
}

// Operators are looked up once.
Tensor contiguous(const Tensor& t) {
  static const Operator op = Operator::find("aten::contiguous");
  return op({t});
}

void squareplus(Call c) {
  const Tensor x = contiguous(c.tensor(0)), out = c.result();
  const double b = c[1].number();
  if (x.dtype() == FACULA_FLOAT32) return fill<float>(x, static_cast<float>(b), out);
  fill<double>(x, b, out);
}

// d/dx = (1 + x / sqrt(x * x + b)) / 2, in facula's operators: so it has a derivative itself, and
// runs on every device.
void gradient(Backward back) {
  static const Operator mul = Operator::find("aten::mul.Tensor");
  static const Operator add = Operator::find("aten::add.Tensor");
  static const Operator sqrt = Operator::find("aten::sqrt");
  static const Operator div = Operator::find("aten::div.Tensor");
  const Tensor x = back.saved("x");
  const Tensor root = sqrt({add({mul({x, x}), back.argument("b")})});
  const Tensor slope = mul({add({div({x, root}), 1}), 0.5});
  back.set("x", mul({back.grad(), slope}));
}

void register_all() {
  OperatorBuilder("example::squareplus(Tensor x, float b=4.) -> Tensor")
      .doc("(x + sqrt(x * x + b)) / 2, elementwise: relu without its corner.")
      .meta<shape>()
      .cpu<squareplus>()
      .vjp<gradient>("x", "x")
      .pointwise()
      .define();
}

}  // namespace

FACULA_EXTENSION(register_all)
