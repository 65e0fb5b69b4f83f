// A layout in a library of its own: matrices of which only the diagonal is kept. Opened at run
// time, it registers the kind, an operator that makes such tensors, two that look into them, and
// kernels for a few of facula's operators. It includes facula/extension.h alone.
#include <algorithm>
#include <string>

#include "facula/extension.h"

namespace {

using namespace facula::ext;

// --- the kind. The payload is a vector of the diagonal's values, of the tensor's device.

struct Diagonal {
  Tensor values;
  static std::string text(const Diagonal& d);
  static std::vector<Tensor> parts(const Diagonal& d) { return {d.values}; }
  static Tensor from_parts(Sizes sizes, int32_t dtype, facula_device device,
                           std::vector<Tensor> parts);
};
Kind<Diagonal> diagonal_kind;

Tensor over(Tensor values) {
  const int64_t n[] = {values.sizes()[0], values.sizes()[0]};
  const int32_t dtype = values.dtype();
  const facula_device device = values.device();
  auto payload = std::make_unique<Diagonal>(Diagonal{std::move(values)});
  return diagonal_kind.make(std::move(payload), n, dtype, device);
}
const Tensor& values_of(const Tensor& t) { return diagonal_kind.payload(t).values; }

std::string Diagonal::text(const Diagonal& d) {
  const auto n = d.values.sizes()[0];
  if (d.values.device().type == FACULA_META) return "diagonal=...";
  return "diagonal of " + std::to_string(n) + " values";
}

// Parts may come from a file that nobody vouches for.
Tensor Diagonal::from_parts(Sizes sizes, int32_t dtype, facula_device, std::vector<Tensor> parts) {
  const bool fits = parts.size() == 1 && parts[0] && parts[0].sizes().size() == 1 &&
                    sizes.size() == 2 && sizes[0] == sizes[1] && parts[0].sizes()[0] == sizes[0] &&
                    parts[0].dtype() == dtype;
  require(fits, FACULA_VALUE_ERROR, "DiagonalTensor: its parts do not fit its sizes and dtype");
  return over(std::move(parts[0]));
}

// --- operators of facula's that kernels call on the values, looked up once

struct Aten {
  Operator add = Operator::find("aten::add.Tensor"), mul = Operator::find("aten::mul.Tensor"),
           neg = Operator::find("aten::neg"), clone = Operator::find("aten::clone"),
           copy = Operator::find("aten::copy_"), to_copy = Operator::find("aten::_to_copy"),
           zeros = Operator::find("aten::zeros"), diagonal = Operator::find("aten::diagonal"),
           diag_embed = Operator::find("aten::diag_embed");
};
const Aten& aten() {
  static const Aten operators;
  return operators;
}

// --- operators of the layout's own

Operator make_op, values_op;

// Where both are diagonal or numbers: what stands for the operand among the values.
Value operand(const Value& v) {
  if (!v.is_tensor()) return v;
  const Tensor t = v.tensor();
  if (diagonal_kind.has(t)) return values_of(t);
  return aten().diagonal({t});  // of a dense matrix, only the diagonal meets something
}

void make(Call c) {
  const Tensor values = c.tensor(0);
  require(values.sizes().size() == 1, FACULA_RUNTIME_ERROR,
          "toy_layout::diagonal(): expected a vector of values");
  c.set_result(0, over(values));
}
void make_gradient(Backward b) { b.set("values", values_op({b.grad()})); }

void values(Call c) {
  const Tensor t = c.tensor(0);
  c.set_result(0, diagonal_kind.has(t) ? values_of(t) : aten().diagonal({t}));
}
void values_gradient(Backward b) { b.set("self", make_op({b.grad()})); }

void to_dense(Call c) { c.set_result(0, aten().diag_embed({values_of(c.tensor(0))})); }
void to_dense_gradient(Backward b) { b.set("self", make_op({aten().diagonal({b.grad()})})); }

// --- kernels for facula's operators

void add(Call c) {
  const Value other = c[1];
  require(other.is_tensor() && diagonal_kind.has(c.tensor(0)) && diagonal_kind.has(other.tensor()),
          FACULA_NOT_IMPLEMENTED_ERROR, "add(): both must be diagonal");
  c.set_result(0, over(aten().add({values_of(c.tensor(0)), values_of(other.tensor()), c[2]})));
}
void add_in_place(Call c) {
  const Tensor sum = aten().add({values_of(c.tensor(0)), operand(c[1]), c[2]});
  aten().copy({values_of(c.tensor(0)), sum});
  c.set_result(0, c[0]);
}
void mul(Call c) { c.set_result(0, over(aten().mul({operand(c[0]), operand(c[1])}))); }

// On the CPU, of two tensors of float32 that lie as they should: a loop of its own.
int64_t loops_run = 0;
void mul_on_cpu(Call c) {
  const Value a = operand(c[0]), b = operand(c[1]);
  const auto simple = [](const Value& v) {
    return v.is_tensor() && v.tensor().dtype() == FACULA_FLOAT32 && v.tensor().is_contiguous();
  };
  if (!simple(a) || !simple(b)) return mul(c);
  ++loops_run;
  const Tensor x = a.tensor(), y = b.tensor(), out = Tensor::empty(x.sizes(), FACULA_FLOAT32);
  const float *from = x.data<float>(), *by = y.data<float>();
  std::transform(from, from + x.numel(), by, out.data<float>(), std::multiplies<>());
  c.set_result(0, over(out));
}

void neg(Call c) { c.set_result(0, over(aten().neg({values_of(c.tensor(0))}))); }
void clone(Call c) { c.set_result(0, over(aten().clone({values_of(c.tensor(0))}))); }
void copy(Call c) {
  aten().copy({values_of(c.tensor(0)), values_of(c.tensor(1))});
  c.set_result(0, c[0]);
}
void to_copy(Call c) {
  const Value strided = Value::by_default();
  c.set_result(0, over(aten().to_copy({values_of(c.tensor(0)), c[1], strided, c[3]})));
}
// zeros((n, n), layout=...): a factory is told the layout by its argument.
void zeros(Call c) {
  const Sizes n = c[0].integers();
  require(n.size() == 2 && n[0] == n[1], FACULA_RUNTIME_ERROR,
          "zeros(): a diagonal tensor is a square matrix");
  c.set_result(0, over(aten().zeros({n.first(1), c[1], Value::by_default(), c[3]})));
}

void register_all() {
  diagonal_kind.define("toy_layout.DiagonalTensor", "diagonal", "DiagonalTensorImpl", "Diagonal");
  make_op = OperatorBuilder("toy_layout::diagonal(Tensor values) -> Tensor")
                .doc("A square matrix with these values on its diagonal and zeros beside it.")
                .any<make>()
                .vjp<make_gradient>("values")
                .define();
  values_op = OperatorBuilder("toy_layout::values(Tensor self) -> Tensor")
                  .doc("The values on the diagonal.")
                  .any<values>()
                  .vjp<values_gradient>("self")
                  .define();
  OperatorBuilder("toy_layout::to_dense(Tensor self) -> Tensor")
      .doc("The matrix as a strided tensor.")
      .any<to_dense>()
      .vjp<to_dense_gradient>("self")
      .define();
  diagonal_kind.add_kernel<values>("toy_layout::values");
  diagonal_kind.add_kernel<to_dense>("toy_layout::to_dense");
  diagonal_kind.add_kernel<add>("aten::add.Tensor");
  diagonal_kind.add_kernel<add_in_place>("aten::add_.Tensor");
  diagonal_kind.add_kernel<mul>("aten::mul.Tensor");
  diagonal_kind.add_kernel<mul_on_cpu>("aten::mul.Tensor", FACULA_CPU);
  diagonal_kind.add_kernel<neg>("aten::neg");
  diagonal_kind.add_kernel<clone>("aten::clone");
  diagonal_kind.add_kernel<copy>("aten::copy_");
  diagonal_kind.add_kernel<to_copy>("aten::_to_copy");
  diagonal_kind.add_kernel<zeros>("aten::zeros");
}

}  // namespace

FACULA_EXTENSION(register_all)

extern "C" int64_t toy_layout_loops_run() { return loops_run; }
