// An operator in a library of its own, derivative included: opened at run time, it defines
// toy_ops::scale_add(x, y, k) = x + k * y. Uses the headers of core/ and dispatch/ alone.
#include "dispatch/backend.h"
#include "dispatch/meta.h"
#include "dispatch/operator.h"
#include "dispatch/rules.h"

namespace {

using namespace facula;

// The shape rule: the tensors agree, the result is like them.
void shape(Meta& m) {
  const Tensor &x = m.tensor(0), &y = m.tensor(1);
  check(same_sizes(x.sizes(), y.sizes()), "scale_add(): expected x and y of one shape; got ",
        str(x.sizes()), " and ", str(y.sizes()));
  check(x.dtype() == y.dtype() && is_floating(x.dtype()),
        "scale_add(): expected x and y of one floating-point dtype; got ", info(x.dtype()).name,
        " and ", info(y.dtype()).name);
  m.result(0, x.sizes(), x.dtype());
}

const Operator& aten(const char* name, const char* overload) {
  const Operator* op = find_operator("aten", name, overload);
  check(op != nullptr, "toy: this build has no operator aten::", name);
  return *op;
}
Tensor contiguous(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Value args[] = {pack(t), pack(MemoryFormat::Contiguous)};
  return call_tensor(aten("clone", ""), args);
}

template <class T>
void scale_add(const Tensor& x, const Tensor& y, double k, const Tensor& out) {
  const T *a = x.data<T>(), *b = y.data<T>();
  T* to = out.data<T>();
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = a[i] + static_cast<T>(k) * b[i];
}

// The kernel fills the result that the shape rule asked for.
void kernel(void*, OpCall& c) {
  const Tensor x = contiguous(c.tensor(0)), y = contiguous(c.tensor(1));
  const Tensor& out = c.results[0].as_tensor();
  const double k = c.arg(2).as_scalar().to<double>();
  if (x.dtype() == DType::Float32) return scale_add<float>(x, y, k, out);
  if (x.dtype() == DType::Float64) return scale_add<double>(x, y, k, out);
  throw Error(ErrorKind::NotImplemented, "scale_add(): float32 and float64 are there; got ",
              info(x.dtype()).name);
}

Tensor times(const Tensor& t, const Value& number) {
  Value args[] = {pack(t), number};
  return call_tensor(aten("mul", "Tensor"), args);
}

constexpr OpRecord record() {
  OpRecord r;
  r.doc = "x + k * y, elementwise, of two tensors of one shape.";
  r.meta = shape;
  r.cpu.function[0] = kernel;
  r.derivatives[0] = vjp("x", [](Backward& b) { return b.grad(); });
  r.derivatives[1] = vjp("y", [](Backward& b) { return times(b.grad(), b.value("k")); });
  return r;
}

[[maybe_unused]] const bool registered = [] {
  const OpRecord r = record();
  define_operator("toy_ops::scale_add(Tensor x, Tensor y, Scalar k=1) -> Tensor", &r);
  return true;
}();

}  // namespace
