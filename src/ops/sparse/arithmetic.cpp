// Sums, products and quotients with sparse tensors.
#include "ops/elementwise/arithmetic.h"

#include "dispatch/backend.h"
#include "dispatch/typed.h"
#include "kernels/cpu/sparse/indices.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/activation.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/meta_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"
#include "ops/sparse/compressed.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/coo.h"
#include "ops/sparse/layouts.h"
#include "ops/sparse/pointwise_calls.h"

namespace facula {
namespace {

using namespace sparse;

bool is_number(const Value& v) {
  return v.is_number() || (v.is_tensor() && is_strided(v.as_tensor()) && v.as_tensor().dim() == 0);
}
bool is_sparse_tensor(const Value& v) { return v.is_tensor() && !is_strided(v.as_tensor()); }

[[noreturn]] void refuse_sum() {
  throw Error(ErrorKind::Runtime,
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
}

void check_same_sizes(const char* op, const Tensor& a, const Tensor& b) {
  check(same_sizes(a.sizes(), b.sizes()), op, ": expected 'self' and 'other' to have same size, ",
        "but self has size ", str(a.sizes()), " while other has size ", str(b.sizes()),
        " (sparse tensors do not broadcast)");
}

// --- sums: self + alpha * other

Tensor dense_plus_coo(const Tensor& self, const Tensor& other, const Scalar& alpha, DType dtype,
                      bool in_place) {
  check_same_sizes("add", self, other);
  const Tensor to =
      in_place ? self : ops::_to_copy(self, dtype, {}, {}, {}, false, MemoryFormat::Contiguous);
  const Coo& c = coo(other);
  const Tensor flat = flat_positions(other), values = ops::to(c.values, to.dtype());
  const IntVec cells = joined(checked_numel(sparse_sizes(other)), c.values.sizes().subspan(1));
  if (to.is_contiguous()) {
    ops::index_add_(alias_tensor(to, cells, contiguous_strides(cells), to.storage_offset()), 0,
                    flat, values, alpha);
    return to;
  }
  const Tensor sum = ops::index_add(ops::reshape(to, cells), 0, flat, values, alpha);
  return ops::copy_(to, ops::reshape(sum, to.sizes()));
}

Tensor sum_of_coo(const Tensor& self, const Tensor& other, const Scalar& alpha, DType dtype) {
  check_same_sizes("add", self, other);
  const Coo &a = coo(self), &b = coo(other);
  check(sparse_dims(a) == sparse_dims(b), "add: expected 'self' and 'other' to have the same ",
        "number of sparse dimensions; got ", sparse_dims(a), " and ", sparse_dims(b));
  const auto both = cpu::sparse::merged(flat_positions(self), flat_positions(other));
  const IntVec sizes = joined(both.numbers.numel(), a.values.sizes().subspan(1));
  const bool is_bool = dtype == DType::Bool;
  const DType compute = is_bool ? DType::Int64 : dtype;
  const Tensor sum = ops::zeros(sizes, compute, {}, self.device());
  ops::index_add_(sum, 0, both.from_a, ops::to(a.values, compute));
  ops::index_add_(sum, 0, both.from_b, ops::to(b.values, compute), alpha);
  return coo_tensor(self.sizes(), cpu::sparse::positions_of(both.numbers, sparse_sizes(self)),
                    is_bool ? ops::to(sum, dtype) : sum, a.coalesced && b.coalesced);
}

Tensor sum_of_compressed(const Tensor& self, const Tensor& other, const Scalar& alpha,
                         DType dtype) {
  check_same_sizes("add", self, other);
  check(self->layout == other->layout, "add: expected tensors of one layout; got ",
        layout_name(self->layout), " and ", layout_name(other->layout));
  const Grid g = grid_of(self), h = grid_of(other);
  check(g.height == h.height && g.width == h.width && g.batch.size() == h.batch.size(),
        "add: expected blocks of one size; got ", g.height, "x", g.width, " and ", h.height, "x",
        h.width);
  const Tensor numbers[] = {block_numbers(self), block_numbers(other)};
  const auto blocks = [&](const Tensor& t, const Tensor& n) {
    return ops::reshape(ops::to(compressed(t).values, dtype),
                        joined(IntVec{n.numel(), g.height, g.width}, g.dense));
  };
  const Tensor values[] = {blocks(self, numbers[0]), ops::mul(blocks(other, numbers[1]), alpha)};
  const auto groups = cpu::sparse::grouped(ops::cat(numbers));
  const Tensor sum = summed_by_group(ops::cat(values), groups.group_of, groups.numbers.numel());
  return compressed_of_blocks(self->layout, self.sizes(), g, groups.numbers, sum,
                              compressed(self).compressed.dtype());
}

DType sum_dtype(const Value* args) { return result_type({args, 2}); }

Tensor sum(const Value& self, const Value& other, const Scalar& alpha) {
  const Value both[] = {self, other};
  const DType dtype = sum_dtype(both);
  if (!self.is_tensor() || !other.is_tensor() || !is_sparse_tensor(other)) {
    if (self.is_tensor() && is_compressed(self.as_tensor()) && other.is_tensor())
      return ops::add(ops::to_dense(self.as_tensor()), other.as_tensor(), alpha);
    refuse_sum();
  }
  const Tensor &a = self.as_tensor(), &b = other.as_tensor();
  if (is_coo(a) && is_coo(b)) return sum_of_coo(a, b, alpha, dtype);
  if (is_coo(b) && is_strided(a)) return dense_plus_coo(a, b, alpha, dtype, false);
  if (is_strided(a)) {
    check_same_sizes("add", a, b);
    return ops::add(a, ops::to_dense(b), alpha);
  }
  return sum_of_compressed(a, b, alpha, dtype);
}
Tensor add(const Value& self, const Value& other, const Scalar& alpha) {
  return sum(self, other, alpha);
}
Tensor sub(const Value& self, const Value& other, const Scalar& alpha) {
  return sum(self, other, -alpha);
}

template <bool Less>
Tensor add_in_place(const Tensor& self, const Value& other, const Scalar& alpha) {
  const Scalar by = Less ? -alpha : alpha;
  const Value me = Value::of_tensor(self.get());
  if (is_strided(self) && is_sparse_tensor(other) && is_coo(other.as_tensor())) {
    const Value both[] = {me, other};
    const DType dtype = sum_dtype(both);
    check(can_cast(dtype, self.dtype()), "result type ", name(dtype),
          " can't be cast to the desired output type ", name(self.dtype()));
    return dense_plus_coo(self, other.as_tensor(), by, self.dtype(), true);
  }
  return ops::copy_(self, sum(me, other, by));
}

// --- products

Tensor product_of_coo(const Tensor& self, const Tensor& other) {
  check_same_sizes("mul", self, other);
  const Tensor a = coalesced(self), b = coalesced(other);
  check(sparse_dims(coo(a)) == sparse_dims(coo(b)), "mul: expected 'self' and 'other' to have the ",
        "same number of sparse dimensions; got ", sparse_dims(coo(a)), " and ",
        sparse_dims(coo(b)));
  const Tensor flat = flat_positions(a);
  const auto pairs = cpu::sparse::pairs_of_equals(flat, flat_positions(b));
  const Tensor values = ops::mul(ops::index_select(coo(a).values, 0, pairs.first),
                                 ops::index_select(coo(b).values, 0, pairs.second));
  return coo_tensor(self.sizes(), ops::index_select(plain_indices(a), 1, pairs.first), values,
                    true);
}

Tensor product_of_compressed(const Tensor& a, const Tensor& b) {
  check_same_sizes("mul", a, b);
  if (is_coo(b) || a->layout != b->layout) return ops::mul(a, ops::to_dense(b));
  const Grid g = grid_of(a), h = grid_of(b);
  if (g.height != h.height || g.width != h.width) return ops::mul(a, ops::to_dense(b));
  const Tensor numbers = block_numbers(a);
  const auto pairs = cpu::sparse::pairs_of_equals(numbers, block_numbers(b));
  const auto blocks = [&](const Tensor& t, const Tensor& chosen) {
    const Tensor& values = compressed(t).values;
    const IntVec sizes = joined(IntVec{-1, g.height, g.width}, g.dense);
    if (values.numel() == 0) {
      const IntVec none = joined(IntVec{0, g.height, g.width}, g.dense);
      return ops::reshape(values, none);
    }
    return ops::index_select(ops::reshape(values, sizes), 0, chosen);
  };
  return compressed_of_blocks(a->layout, a.sizes(), g, ops::index_select(numbers, 0, pairs.first),
                              ops::mul(blocks(a, pairs.first), blocks(b, pairs.second)),
                              compressed(a).compressed.dtype());
}

Tensor product_with_dense(const Tensor& self, const Tensor& dense) {
  const IntVec sizes = broadcast_sizes(self.sizes(), dense.sizes());
  check_kind(ErrorKind::NotImplemented, same_sizes(sizes, self.sizes()),
             "mul(): a sparse tensor of size ", str(self.sizes()),
             " is not broadcast to that of a dense one, ", str(dense.sizes()));
  const Tensor whole = ops::expand(dense, sizes);
  if (is_coo(self))
    return with_values(self, ops::mul(coo(self).values, values_at(whole, coo(self).indices)));
  return with_values(
      self, ops::mul(compressed(self).values, compressed(mask_compressed(whole, self)).values));
}

void mul(void*, OpCall& c) {
  const Value &a = c.args[0], &b = c.args[1];
  if (is_number(b)) {
    const Tensor& t = a.as_tensor();
    return set_result(c.results[0], with_values(t, called_with(c, 0, values_of(t))));
  }
  if (is_number(a)) {
    const Tensor& t = b.as_tensor();
    return set_result(c.results[0], with_values(t, called_with(c, 1, values_of(t))));
  }
  const Tensor &x = a.as_tensor(), &y = b.as_tensor();
  if (is_coo(x) && is_coo(y)) return set_result(c.results[0], product_of_coo(x, y));
  if (is_strided(x)) return set_result(c.results[0], product_with_dense(y, x));
  if (is_strided(y)) return set_result(c.results[0], product_with_dense(x, y));
  if (is_compressed(x)) return set_result(c.results[0], product_of_compressed(x, y));
  set_result(c.results[0], product_of_compressed(y, x));
}

// --- quotients by numbers

template <bool Rounds>
void divide(void*, OpCall& c) {
  const Value &a = c.args[0], &b = c.args[1];
  check(is_sparse_tensor(a) && is_number(b),
        "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape ",
        b.is_tensor() ? str(b.as_tensor().sizes()) : str(IntSpan()), " for divisor)");
  // A sum of rounded quotients is not the rounded quotient of the sum.
  const Tensor self =
      Rounds && is_coo(a.as_tensor()) ? coalesced(a.as_tensor()) : Tensor(a.as_tensor());
  set_result(c.results[0], with_values(self, called_with(c, 0, values_of(self))));
}

// --- the gradient of relu: that of elements above the threshold

Tensor threshold_backward(const Tensor& grad, const Tensor& self, const Scalar& threshold) {
  const Tensor& like = is_strided(self) ? grad : self;
  const Tensor t = is_coo(like) ? coalesced(like) : like;
  const auto at = [&](const Tensor& x) {
    if (is_coo(t)) return x.is_same(t) ? coo(t).values : values_at(x, coo(t).indices);
    return compressed(mask_compressed(x, t)).values;
  };
  return with_values(t, ops::threshold_backward(at(grad), at(self), threshold));
}

const CooKernels coo_kernels{
    kernel<threshold_backward>(op::threshold_backward),
    kernel<add>(op::add_Tensor),
    kernel<sub>(op::sub_Tensor),
    kernel<add_in_place<false>>(op::add_Tensor_inplace),
    kernel<add_in_place<true>>(op::sub_Tensor_inplace),
    {&op::mul_Tensor, mul},
    {&op::div_Tensor, divide<false>},
    {&op::div_Tensor_mode, divide<true>},
    {&op::floor_divide, divide<true>},
};
const CompressedKernels compressed_kernels{
    kernel<threshold_backward>(op::threshold_backward),
    kernel<add>(op::add_Tensor),
    kernel<sub>(op::sub_Tensor),
    {&op::mul_Tensor, mul},
    {&op::div_Tensor, divide<false>},
    {&op::div_Tensor_mode, divide<true>},
    {&op::floor_divide, divide<true>},
};

}  // namespace
}  // namespace facula
