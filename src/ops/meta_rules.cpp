#include "ops/meta_rules.h"

namespace facula {

void Promotion::add(const Tensor& t) {
  DType& weight = t->wrapped_number ? numbers_ : (t.dim() == 0 ? zero_dim_ : tensors_);
  DType d = t.dtype();
  // A number made into a tensor weighs as a number of its kind.
  if (t->wrapped_number && is_complex(d)) d = complex_of(default_dtype());
  if (t->wrapped_number && is_floating(d)) d = default_dtype();
  weight = promote(weight, d);
}

void Promotion::add(const Value& v) {
  if (v.is_tensor()) return add(v.as_tensor());
  if (v.is_number()) add_number(v.as_scalar().dtype());
}

// The weightier dtype, unless the other is of a higher kind.
static DType combine(DType heavy, DType light) {
  if (heavy == DType::Undefined) return light;
  if (light == DType::Undefined) return heavy;
  auto level = [](DType d) {
    if (is_complex(d)) return 3;
    if (is_floating(d)) return 2;
    return d == DType::Bool ? 0 : 1;
  };
  if (level(light) <= level(heavy)) return heavy;
  // What is complex and light adds an imaginary part, and no digits.
  if (is_complex(light) && is_floating(heavy)) return complex_of(heavy);
  return promote(heavy, light);
}

DType Promotion::result() const { return combine(tensors_, combine(zero_dim_, numbers_)); }

DType result_type(std::span<const Value> values) {
  Promotion p;
  for (const Value& v : values) {
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors()) p.add(t);
    else
      p.add(v);
  }
  return p.result();
}

namespace meta {

// The first tensor, where all are contiguous and have its shape; or null.
static const Tensor* common_geometry(const Meta& m, int inputs) {
  const Tensor* first = nullptr;
  for (int i = 0; i < inputs; ++i) {
    const Value& v = m.arg(i);
    if (!v.is_tensor()) continue;
    if (!v.tensor->contiguous) return nullptr;
    if (!first)
      first = &v.as_tensor();
    else if (!same_sizes(v.tensor->sizes(), first->sizes()))
      return nullptr;
  }
  return first;
}

void pointwise_result(Meta& m, int inputs, DType result, DType compute) {
  m.call.compute = compute;
  if (const Tensor* like = common_geometry(m, inputs)) return m.result_same(*like, result);
  const Tensor* tensors[4];
  size_t n = 0;
  for (int i = 0; i < inputs; ++i)
    if (m.arg(i).is_tensor()) tensors[n++] = &m.tensor(i);
  if (n == 0) return m.result(0, {}, result);
  bool contiguous = true;
  for (size_t k = 0; k < n; ++k) contiguous &= tensors[k]->is_contiguous();
  IntVec sizes(tensors[0]->sizes());
  for (size_t k = 1; k < n; ++k) sizes = broadcast_sizes(sizes, tensors[k]->sizes());
  // Strides of contiguous inputs fall from dimension to dimension, and so do the result's.
  if (contiguous) return m.result(0, sizes, result);
  m.result(0, sizes, result, elementwise_strides(sizes, {tensors, n}));
}

void unary(Meta& m) {
  const DType d = m.tensor(0).dtype();
  pointwise_result(m, 1, d, d);
}

void unary_float(Meta& m) {
  const DType d = float_of(m.tensor(0).dtype());
  pointwise_result(m, 1, d, d);
}

void unary_bool(Meta& m) { pointwise_result(m, 1, DType::Bool, m.tensor(0).dtype()); }

void value_test(Meta& m) {
  pointwise_result(m, 1, DType::Bool, comparison_of(m.tensor(0).dtype()));
}

void unary_real(Meta& m) {
  const DType d = m.tensor(0).dtype();
  pointwise_result(m, 1, real_of(d), d);
}

static DType common(Meta& m, int inputs) {
  if (inputs == 2 && m.arg(0).is_tensor() && m.arg(1).is_tensor() &&
      m.tensor(0).dtype() == m.tensor(1).dtype())
    return m.tensor(0).dtype();
  return result_type({m.call.args, static_cast<size_t>(inputs)});
}

void binary(Meta& m) {
  const DType d = common(m, 2);
  pointwise_result(m, 2, d, d);
}

void binary_float(Meta& m) {
  const DType d = float_of(common(m, 2));
  pointwise_result(m, 2, d, d);
}

void compare(Meta& m) { pointwise_result(m, 2, DType::Bool, common(m, 2)); }
void equality(Meta& m) { pointwise_result(m, 2, DType::Bool, comparison_of(common(m, 2))); }

void ternary(Meta& m) {
  const DType d = common(m, 3);
  pointwise_result(m, 3, d, d);
}

void not_two_numbers(const Meta& m) {
  check_type(m.arg(0).is_tensor() || m.arg(1).is_tensor(), m.op_name(),
             "(): expected a Tensor as its first or second argument; got two numbers");
}

void binary_of_tensor(Meta& m) {
  not_two_numbers(m);
  binary(m);
}

void binary_float_of_tensor(Meta& m) {
  not_two_numbers(m);
  binary_float(m);
}

}  // namespace meta
}  // namespace facula
