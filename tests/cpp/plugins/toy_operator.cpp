// An operator in a library of its own, derivative included: it defines
// toy_ops::scale_add(x, y, k) = x + k * y. It includes facula/extension.h alone, and so runs with
// any later build of facula.
#include <algorithm>

#include "facula/extension.h"

namespace {

using namespace facula::ext;

bool is_floating(const Tensor& t) {
  return t.dtype() == FACULA_FLOAT32 || t.dtype() == FACULA_FLOAT64;
}

// The shape rule: the tensors agree, the result is like them.
void shape(Meta m) {
  const Tensor x = m.tensor(0), y = m.tensor(1);
  require(std::ranges::equal(x.sizes(), y.sizes()), FACULA_RUNTIME_ERROR,
          "scale_add(): expected x and y of one shape");
  require(x.dtype() == y.dtype() && is_floating(x), FACULA_RUNTIME_ERROR,
          "scale_add(): expected x and y both float32 or float64");
  m.result(0, x.sizes(), x.dtype());
}

Tensor contiguous(const Tensor& t) {
  static const Operator clone = Operator::find("aten::contiguous");
  return t.is_contiguous() ? t : clone({t});
}

template <class T>
void scale_add(const Tensor& x, const Tensor& y, double k, const Tensor& out) {
  const T *a = x.data<T>(), *b = y.data<T>();
  T* to = out.data<T>();
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = a[i] + static_cast<T>(k) * b[i];
}

// The kernel fills the result that the shape rule asked for.
void kernel_on_cpu(Call c) {
  const Tensor x = contiguous(c.tensor(0)), y = contiguous(c.tensor(1)), out = c.result();
  const double k = c[2].number();
  if (x.dtype() == FACULA_FLOAT32) return scale_add<float>(x, y, k, out);
  scale_add<double>(x, y, k, out);
}

void gradient_of_x(Backward b) { b.set("x", b.grad()); }
void gradient_of_y(Backward b) {
  static const Operator mul = Operator::find("aten::mul.Tensor");
  b.set("y", mul({b.grad(), b.argument("k")}));
}

// twice(x): made of other operators, which have derivatives and batching rules.
void twice(Call c) {
  static const Operator add = Operator::find("aten::add.Tensor");
  c.set_result(0, add({c[0], c[0]}));
}

void register_all() {
  OperatorBuilder("toy_ops::scale_add(Tensor x, Tensor y, Scalar k=1) -> Tensor")
      .doc("x + k * y, elementwise, of two tensors of one shape.")
      .meta<shape>()
      .cpu<kernel_on_cpu>()
      .vjp<gradient_of_x>("x")
      .vjp<gradient_of_y>("y")
      .define();
  OperatorBuilder("toy_ops::twice(Tensor x) -> Tensor").doc("x + x.").composite<twice>().define();
}

}  // namespace

FACULA_EXTENSION(register_all)
