// Sparse tensors with dimensions in another order, put in, taken out, selected and joined. None of
// the results shares memory with its argument as a view does.
#include <algorithm>
#include <vector>

#include "dispatch/typed.h"
#include "kernels/cpu/sparse/indices.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/cat.h"
#include "ops/shape/split.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"
#include "ops/sparse/compressed.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/layouts.h"
#include "ops/sparse/pointwise_calls.h"

namespace facula {
namespace {

using namespace sparse;

IntVec in_order(IntSpan sizes, IntSpan order) {
  IntVec v;
  for (int64_t d : order) v.push_back(sizes[static_cast<size_t>(d)]);
  return v;
}

// Rows of indices (dims, n) in another order.
Tensor rows_in_order(const Tensor& indices, IntSpan order) {
  const int64_t n = indices.sizes()[1];
  const int64_t shape[] = {static_cast<int64_t>(order.size()), n};
  const Tensor rows = empty_tensor(shape, DType::Int64);
  for (size_t k = 0; k < order.size(); ++k)
    std::copy_n(indices.data<int64_t>() + order[k] * n, n,
                rows.data<int64_t>() + static_cast<int64_t>(k) * n);
  return rows;
}

// Another tensor over the same elements.
Tensor with_same_values(const Tensor& t) { return with_values(t, values_of(t)); }

// --- order of dimensions

Tensor permuted(const Tensor& t, IntSpan order) {
  const Coo& c = coo(t);
  const int64_t sparse = sparse_dims(c);
  IntVec rows, dense(1, 0);
  bool keeps_rows = true;
  for (size_t k = 0; k < order.size(); ++k) {
    const bool is_sparse = static_cast<int64_t>(k) < sparse;
    check(is_sparse == (order[k] < sparse),
          "transpose(): a sparse and a dense dimension of a sparse tensor cannot change places; "
          "got order ",
          str(order));
    if (!is_sparse) {
      dense.push_back(order[k] - sparse + 1);
      continue;
    }
    keeps_rows = keeps_rows && order[k] == static_cast<int64_t>(k);
    rows.push_back(order[k]);
  }
  return coo_tensor(in_order(t.sizes(), order), rows_in_order(plain_indices(t), rows),
                    ops::permute(c.values, dense), c.coalesced && keeps_rows);
}

IntVec identity(int64_t dims) {
  IntVec order;
  for (int64_t d = 0; d < dims; ++d) order.push_back(d);
  return order;
}
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  IntVec order = identity(self.dim());
  if (order.empty()) return with_same_values(self);
  std::swap(order[static_cast<size_t>(wrap_dim(dim0, self.dim()))],
            order[static_cast<size_t>(wrap_dim(dim1, self.dim()))]);
  return permuted(self, order);
}
IntVec wrapped_order(const Tensor& self, IntSpan dims) {
  check(static_cast<int64_t>(dims.size()) == self.dim(),
        "permute(sparse): number of dimensions in ",
        "the tensor input does not match the length of the desired ordering of dimensions i.e. ",
        "input.dim() = ", self.dim(), " is not equal to len(dims) = ", dims.size());
  IntVec order, seen(dims.size(), 0);
  for (int64_t d : dims) {
    const int64_t at = wrap_dim(d, self.dim());
    check(!seen[static_cast<size_t>(at)], "permute(): duplicate dims are not allowed.");
    seen[static_cast<size_t>(at)] = 1;
    order.push_back(at);
  }
  return order;
}
Tensor permute(const Tensor& self, IntSpan dims) {
  return permuted(self, wrapped_order(self, dims));
}

Layout turned(Layout l) {
  switch (l) {
    case Layout::SparseCsr:
      return Layout::SparseCsc;
    case Layout::SparseCsc:
      return Layout::SparseCsr;
    case Layout::SparseBsr:
      return Layout::SparseBsc;
    default:
      return Layout::SparseBsr;
  }
}
// Rows become columns: the same indices say so in the other layout.
Tensor transpose_compressed(const Tensor& self, int64_t dim0, int64_t dim1) {
  const Compressed& c = compressed(self);
  const int64_t batch = c.compressed.dim() - 1;
  int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  if (a > b) std::swap(a, b);
  if (a == b) return with_same_values(self);
  check(a == batch && b == batch + 1, "transpose(): of a ", layout_name(self->layout),
        " tensor the dimensions of its matrices alone can change places, ", batch, " and ",
        batch + 1, "; got ", a, " and ", b);
  IntVec sizes(self.sizes());
  std::swap(sizes[static_cast<size_t>(a)], sizes[static_cast<size_t>(b)]);
  const Tensor values =
      in_blocks(self->layout) ? ops::transpose(c.values, batch + 1, batch + 2) : c.values;
  return compressed_tensor(turned(self->layout), sizes, c.compressed, c.plain, values);
}
Tensor permute_compressed(const Tensor& self, IntSpan dims) {
  const IntVec order = wrapped_order(self, dims);
  IntVec moved;
  for (size_t d = 0; d < order.size(); ++d)
    if (order[d] != static_cast<int64_t>(d)) moved.push_back(static_cast<int64_t>(d));
  if (moved.empty()) return with_same_values(self);
  check_kind(ErrorKind::NotImplemented, moved.size() == 2,
             "permute(): of a compressed sparse tensor only two dimensions can change places");
  return transpose_compressed(self, moved[0], moved[1]);
}

// --- dimensions put in and taken out

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const int64_t at = wrap_dim(dim, self.dim() + 1);
  const Coo& c = coo(self);
  IntVec sizes(self.sizes().first(static_cast<size_t>(at)));
  sizes.push_back(1);
  sizes = joined(sizes, self.sizes().subspan(static_cast<size_t>(at)));
  if (at > sparse_dims(c))
    return coo_tensor(sizes, c.indices, ops::unsqueeze(c.values, at - sparse_dims(c) + 1),
                      c.coalesced);
  const int64_t n = nnz(c), dims = sparse_dims(c);
  const Tensor indices = plain_indices(self), zeros = ops::zeros({1, n}, DType::Int64);
  const Tensor parts[] = {ops::narrow(indices, 0, 0, at), zeros,
                          ops::narrow(indices, 0, at, dims - at)};
  return coo_tensor(sizes, ops::cat(parts), c.values, c.coalesced);
}

Tensor squeeze_one(const Tensor& self, int64_t at) {
  const Coo& c = coo(self);
  IntVec sizes = joined(self.sizes().first(static_cast<size_t>(at)),
                        self.sizes().subspan(static_cast<size_t>(at) + 1));
  if (at >= sparse_dims(c))
    return coo_tensor(sizes, c.indices, ops::squeeze(c.values, at - sparse_dims(c) + 1),
                      c.coalesced);
  IntVec rows;
  for (int64_t d = 0; d < sparse_dims(c); ++d)
    if (d != at) rows.push_back(d);
  return coo_tensor(sizes, rows_in_order(plain_indices(self), rows), c.values, c.coalesced);
}
Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  const int64_t at = wrap_dim(dim, self.dim());
  if (self.dim() == 0 || self.sizes()[static_cast<size_t>(at)] != 1) return with_same_values(self);
  return squeeze_one(self, at);
}
Tensor squeeze(const Tensor& self) {
  Tensor t = with_same_values(self);
  for (int64_t d = self.dim(); d-- > 0;)
    if (self.sizes()[static_cast<size_t>(d)] == 1) t = squeeze_one(t, d);
  return t;
}

// --- selection

// The elements for which `kept` (nnz) holds.
struct Kept {
  Tensor indices, values;
};
Kept kept_of(const Tensor& t, const Tensor& kept) {
  const Tensor at = ops::reshape(ops::nonzero(kept), IntVec(1, -1));
  return {ops::index_select(plain_indices(t), 1, at), ops::index_select(coo(t).values, 0, at)};
}

int64_t wrapped_index(const Tensor& t, int64_t dim, int64_t index) {
  const int64_t size = t.sizes()[static_cast<size_t>(dim)];
  check_index(index >= -size && index < size, "select(): index ", index,
              " out of range for tensor of size ", str(t.sizes()), " at dimension ", dim);
  return index < 0 ? index + size : index;
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  check_index(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, self.dim()), at = wrapped_index(self, d, index);
  const Coo& c = coo(self);
  const int64_t sparse = sparse_dims(c);
  IntVec sizes = joined(self.sizes().first(static_cast<size_t>(d)),
                        self.sizes().subspan(static_cast<size_t>(d) + 1));
  if (d >= sparse) {
    return coo_tensor(sizes, c.indices, ops::contiguous(ops::select(c.values, d - sparse + 1, at)),
                      c.coalesced);
  }
  flat_positions(self);
  const Kept kept = kept_of(self, ops::eq(ops::select(plain_indices(self), 0, d), at));
  if (sparse == 1) return ops::sum(kept.values, IntList{0}, false, self.dtype());
  IntVec rows;
  for (int64_t k = 0; k < sparse; ++k)
    if (k != d) rows.push_back(k);
  return coo_tensor(sizes, rows_in_order(ops::contiguous(kept.indices), rows), kept.values,
                    c.coalesced);
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  check_index(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim());
  std::vector<Tensor> each;
  for (int64_t i = 0; i < self.sizes()[static_cast<size_t>(d)]; ++i)
    each.push_back(select(self, d, i));
  return each;
}

Tensor select_of_compressed(const Tensor& self, int64_t dim, int64_t index) {
  check_index(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, self.dim()), at = wrapped_index(self, d, index);
  const Compressed& c = compressed(self);
  const int64_t batch = c.compressed.dim() - 1;
  if (d >= batch && batch == 0) return select(coo_of_compressed(self), d, at);
  check(d < batch, "select(): of a batched ", layout_name(self->layout),
        " tensor a dimension of the batch alone can be selected; got ", d);
  IntVec sizes = joined(self.sizes().first(static_cast<size_t>(d)),
                        self.sizes().subspan(static_cast<size_t>(d) + 1));
  const auto part = [&](const Tensor& t) { return ops::contiguous(ops::select(t, d, at)); };
  return compressed_tensor(self->layout, sizes, part(c.compressed), part(c.plain), part(c.values));
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim(dim, self.dim());
  check_index(self.dim() > 0, "index_select() cannot be applied to a 0-dim tensor.");
  check_index(index.dim() == 1 && (index.dtype() == DType::Int64 || index.dtype() == DType::Int32),
              "index_select() argument index must be 1-D long-tensor.");
  const int64_t size = self.sizes()[static_cast<size_t>(d)];
  const Tensor wanted = ops::clone(ops::contiguous(ops::to(index, DType::Int64)));
  int64_t* at = wanted.data<int64_t>();
  for (int64_t i = 0; i < wanted.numel(); ++i) {
    check_index(at[i] >= -size && at[i] < size, "index_select(): index contains ", at[i],
                " that is out of range for tensor of size ", str(self.sizes()), " at dimension ",
                d);
    if (at[i] < 0) at[i] += size;
  }
  IntVec sizes(self.sizes());
  sizes[static_cast<size_t>(d)] = wanted.numel();
  const Tensor t = coalesced(self);
  const Coo& c = coo(t);
  if (d >= sparse_dims(c))
    return coo_tensor(sizes, c.indices, ops::index_select(c.values, d - sparse_dims(c) + 1, wanted),
                      true);
  const Tensor indices = plain_indices(t);
  const auto pairs =
      cpu::sparse::pairs_of_equals(wanted, ops::contiguous(ops::select(indices, 0, d)));
  const Tensor chosen = ops::index_select(indices, 1, pairs.second);
  ops::copy_(ops::select(chosen, 0, d), pairs.first);
  const Tensor found =
      coo_tensor(sizes, chosen, ops::index_select(c.values, 0, pairs.second), false);
  // Positions are different, and ascend where the first dimension is the one selected from.
  coo(found).coalesced =
      nnz(coo(found)) < 2 || cpu::sparse::strictly_ascending(flat_positions(found));
  return found;
}

Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  const int64_t d = wrap_dim(dim, self.dim());
  check(self.dim() > 0, "narrow_copy() cannot be applied to a 0-dim tensor.");
  const int64_t size = self.sizes()[static_cast<size_t>(d)];
  const int64_t from = start < 0 ? start + size : start;
  check(length >= 0, "narrow(): length must be non-negative.");
  check(from >= 0 && from <= size && length <= size - from, "start (", start, ") + length (",
        length, ") exceeds dimension size (", size, ").");
  IntVec sizes(self.sizes());
  sizes[static_cast<size_t>(d)] = length;
  const Coo& c = coo(self);
  if (d >= sparse_dims(c))
    return coo_tensor(sizes, ops::clone(c.indices),
                      ops::clone(ops::narrow(c.values, d - sparse_dims(c) + 1, from, length)),
                      c.coalesced);
  flat_positions(self);
  const Tensor at = ops::select(plain_indices(self), 0, d);
  const Kept kept = kept_of(self, ops::logical_and(ops::ge(at, from), ops::lt(at, from + length)));
  const Tensor row = ops::select(kept.indices, 0, d);
  ops::sub_(row, from);
  return coo_tensor(sizes, kept.indices, kept.values, c.coalesced);
}

// --- joining

Tensor cat(std::span<const Tensor> tensors, int64_t dim) {
  check(!tensors.empty(), "cat(): expected a non-empty list of Tensors");
  for (const Tensor& t : tensors)
    check(is_coo(t), "Concatenating sparse tensors, but a tensor of layout ",
          layout_name(t->layout), " was found.");
  const Tensor& first = tensors[0];
  const int64_t d = wrap_dim(dim, first.dim()), sparse = sparse_dims(coo(first));
  IntVec sizes(first.sizes());
  int64_t length = 0;
  DType dtype = first.dtype();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    dtype = promote(dtype, t.dtype());
    check(t.dim() == first.dim() && sparse_dims(coo(t)) == sparse,
          "cat(): all tensors must have the same numbers of sparse and dense dimensions; tensor ",
          i, " does not");
    for (int64_t k = 0; k < t.dim(); ++k)
      check(k == d || t.sizes()[static_cast<size_t>(k)] == first.sizes()[static_cast<size_t>(k)],
            "cat(): sizes must match except in dimension ", d, "; got ", str(first.sizes()),
            " and ", str(t.sizes()), " at ", i);
    check(!__builtin_add_overflow(length, t.sizes()[static_cast<size_t>(d)], &length),
          "cat(): the sizes are too large");
  }
  std::vector<Tensor> indices, values;
  int64_t before = 0, elements = 0;
  for (const Tensor& t : tensors) elements += nnz(coo(t));
  for (const Tensor& t : tensors) {
    const Coo& c = coo(t);
    const Tensor v = ops::to(c.values, dtype);
    if (d < sparse) {
      const Tensor at = ops::clone(plain_indices(t));
      const Tensor row = ops::select(at, 0, d);
      ops::add_(row, before);
      indices.push_back(at);
      values.push_back(v);
    } else {
      // Zeros stand where the others have their dense parts.
      IntVec wide(v.sizes());
      const int64_t at = d - sparse + 1, own = t.sizes()[static_cast<size_t>(d)];
      wide[static_cast<size_t>(at)] = length;
      const Tensor whole = ops::zeros(wide, dtype);
      ops::copy_(ops::narrow(whole, at, before, own), v);
      indices.push_back(c.indices);
      values.push_back(whole);
    }
    before += t.sizes()[static_cast<size_t>(d)];
  }
  sizes[static_cast<size_t>(d)] = length;
  return coo_tensor(sizes, ops::cat(indices, 1), ops::cat(values, 0), elements < 2);
}

Tensor stack(std::span<const Tensor> tensors, int64_t dim) {
  check(!tensors.empty(), "stack(): expected a non-empty list of Tensors");
  std::vector<Tensor> each;
  for (const Tensor& t : tensors) {
    check(same_sizes(t.sizes(), tensors[0].sizes()), "stack expects each tensor to be equal size");
    each.push_back(ops::unsqueeze(t, dim));
  }
  return ops::cat(each, dim);
}

Tensor conjugate(const Tensor& self) {
  return with_values(self, ops::_conj_physical(values_of(self)));
}
Tensor expand(const Tensor& self, IntSpan size, bool) {
  check(same_sizes(self.sizes(), size), "expand is unsupported for ", backend_name(self->layout),
        " tensors");
  return with_same_values(self);
}

const CooKernels coo_kernels{
    kernel<transpose>(op::transpose_int),
    kernel<permute>(op::permute),
    kernel<unsqueeze>(op::unsqueeze),
    kernel<squeeze>(op::squeeze),
    kernel<squeeze_dim>(op::squeeze_dim),
    kernel<select>(op::select_int),
    kernel<unbind>(op::unbind_int),
    kernel<index_select>(op::index_select),
    kernel<narrow_copy>(op::narrow_copy),
    kernel<cat>(op::cat),
    kernel<stack>(op::stack),
    kernel<conjugate>(op::_conj),
    kernel<conjugate>(op::_conj_physical),
    kernel<expand>(op::expand),
};
const CompressedKernels compressed_kernels{
    kernel<transpose_compressed>(op::transpose_int), kernel<permute_compressed>(op::permute),
    kernel<select_of_compressed>(op::select_int),    kernel<conjugate>(op::_conj),
    kernel<conjugate>(op::_conj_physical),           kernel<expand>(op::expand),
};

}  // namespace
}  // namespace facula
