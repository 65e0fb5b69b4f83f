#include "ops/sparse/compressed.h"

#include <algorithm>

#include "kernels/cpu/sparse/indices.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/sparse/accessors.h"
#include "ops/sparse/conversion.h"

namespace facula::sparse {
namespace {

Tensor numbers(int64_t n) { return empty_tensor(IntVec(1, n), DType::Int64); }

Tensor as_int64(const Tensor& t) {
  check_kind(ErrorKind::NotImplemented, t.device().is_cpu(),
             "compressed sparse tensors: positions ", "are read on the CPU alone; got ",
             str(t.device()));
  return ops::contiguous(ops::to(t, DType::Int64));
}

// The grid of a tensor with this geometry, whose sizes the blocks must divide.
Grid grid(IntSpan sizes, int64_t batch, int64_t height, int64_t width) {
  check(batch >= 0 && static_cast<int64_t>(sizes.size()) >= batch + 2,
        "expected a tensor with batch, two sparse and dense dimensions; got sizes ", str(sizes));
  const auto at = static_cast<size_t>(batch);
  const int64_t rows = sizes[at], columns = sizes[at + 1];
  check(height > 0 && width > 0 && rows % height == 0 && columns % width == 0,
        "tensor sparse size (", rows, ",", columns, ") must be divisible by given blocksize (",
        height, ",", width, ")");
  return {IntVec(sizes.first(at)),
          checked_numel(sizes.first(at)),
          rows / height,
          columns / width,
          height,
          width,
          IntVec(sizes.subspan(at + 2))};
}

// Numbers of blocks counted by columns, or back by rows.
Tensor turned(const Tensor& from, int64_t rows, int64_t columns) {
  const Tensor to = numbers(from.numel());
  const int64_t cells = std::max<int64_t>(rows * columns, 1);
  for (int64_t i = 0; i < from.numel(); ++i) {
    const int64_t number = from.data<int64_t>()[i], in_matrix = number % cells;
    to.data<int64_t>()[i] = number - in_matrix + (in_matrix % columns) * rows + in_matrix / columns;
  }
  return to;
}

IntVec block_sizes(const Grid& g, int64_t n) {
  return joined(IntVec{n, g.height, g.width}, g.dense);
}

Tensor compressed_of_strided(const Tensor& self, Layout layout, const Grid& g) {
  const Tensor blocks = in_grid(self, g);
  const int64_t cells = blocks.sizes()[0];
  const Tensor kept = ops::any(
      ops::reshape(ops::ne(blocks, 0), IntVec{cells, blocks.numel() / std::max<int64_t>(cells, 1)}),
      1);
  const Tensor flat = ops::contiguous(ops::reshape(ops::nonzero(kept), IntVec(1, -1)));
  return compressed_of_blocks(layout, self.sizes(), g, flat, ops::index_select(blocks, 0, flat),
                              DType::Int64);
}

Tensor compressed_of_coo(const Tensor& self, Layout layout, IntSpan blocksize) {
  check(sparse_dims(coo(self)) == 2, "to_sparse: conversion from Sparse to ", backend_name(layout),
        " is for two sparse dimensions; got ", sparse_dims(coo(self)));
  const Tensor t = coalesced(self);
  const Coo& c = coo(t);
  const Grid g = grid(t.sizes(), 0, blocksize.empty() ? 1 : blocksize[0],
                      blocksize.empty() ? 1 : blocksize[1]);
  const Tensor flat = flat_positions(t);
  if (g.height == 1 && g.width == 1)
    return compressed_of_blocks(layout, t.sizes(), g, flat,
                                ops::reshape(c.values, block_sizes(g, nnz(c))), DType::Int64);
  const Tensor number = numbers(nnz(c)), inside = numbers(nnz(c));
  const int64_t width = t.sizes()[1];
  for (int64_t i = 0; i < nnz(c); ++i) {
    const int64_t row = flat.data<int64_t>()[i] / width, column = flat.data<int64_t>()[i] % width;
    number.data<int64_t>()[i] = row / g.height * g.columns + column / g.width;
    inside.data<int64_t>()[i] = row % g.height * g.width + column % g.width;
  }
  const auto groups = cpu::sparse::grouped(number);
  const int64_t n = groups.numbers.numel(), cells = g.height * g.width;
  const Tensor places = ops::add(ops::mul(groups.group_of, cells), inside);
  const Tensor blocks = ops::new_zeros(c.values, joined(n * cells, g.dense));
  const Tensor where[] = {places};
  ops::index_put_(blocks, where, c.values);
  return compressed_of_blocks(layout, t.sizes(), g, groups.numbers,
                              ops::reshape(blocks, block_sizes(g, n)), DType::Int64);
}

}  // namespace

int64_t blocks_each(const Compressed& c) { return c.plain.size(-1); }

Grid grid_of(const Tensor& t) {
  const Compressed& c = compressed(t);
  const int64_t batch = c.compressed.dim() - 1;
  const auto at = static_cast<size_t>(batch);
  const bool blocks = in_blocks(t->layout);
  check(c.values.dim() > batch + (blocks ? 2 : 0), "values must have more dimensions; got ",
        str(c.values.sizes()));
  const Grid g = grid(t.sizes(), batch, blocks ? c.values.sizes()[at + 1] : 1,
                      blocks ? c.values.sizes()[at + 2] : 1);
  const int64_t n = blocks_each(c);
  const IntVec each = blocks ? IntVec{n, g.height, g.width} : IntVec(1, n);
  const bool fits =
      same_sizes(c.values.sizes(), joined(joined(g.batch, each), g.dense)) &&
      same_sizes(c.plain.sizes(), joined(g.batch, IntVec(1, n))) &&
      same_sizes(c.compressed.sizes(),
                 joined(g.batch, IntVec(1, (by_rows(t->layout) ? g.rows : g.columns) + 1)));
  check(fits, "the parts of a ", layout_name(t->layout), " tensor do not fit its size ",
        str(t.sizes()));
  return g;
}

Tensor block_numbers(const Tensor& t) {
  const Compressed& c = compressed(t);
  const Grid g = grid_of(t);
  const bool rows_first = by_rows(t->layout);
  const int64_t major = rows_first ? g.rows : g.columns, minor = rows_first ? g.columns : g.rows;
  const int64_t n = blocks_each(c);
  const Tensor starts = as_int64(c.compressed), others = as_int64(c.plain);
  const Tensor all = numbers(g.matrices * n);
  checked_numel(IntVec{g.matrices, g.rows, g.columns});
  for (int64_t m = 0; m < g.matrices; ++m) {
    const int64_t begin = m * (major + 1);
    const Tensor own = alias_tensor(starts, IntVec(1, major + 1), IntVec(1, 1), begin);
    const Tensor majors = cpu::sparse::rows_from_starts(own, n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t a = majors.data<int64_t>()[i], b = others.data<int64_t>()[m * n + i];
      check(b >= 0 && b < minor,
            "`0 <= ", rows_first ? "col_indices < ncols" : "row_indices < nrows",
            "` is not satisfied.");
      const int64_t row = rows_first ? a : b, column = rows_first ? b : a;
      all.data<int64_t>()[m * n + i] = (m * g.rows + row) * g.columns + column;
    }
  }
  return all;
}

Tensor in_grid(const Tensor& strided, const Grid& g) {
  const IntVec split = joined(IntVec{g.matrices, g.rows, g.height, g.columns, g.width}, g.dense);
  IntVec order{0, 1, 3, 2, 4};
  for (size_t d = 0; d < g.dense.size(); ++d) order.push_back(5 + static_cast<int64_t>(d));
  const Tensor blocks = ops::permute(ops::reshape(strided, split), order);
  return ops::reshape(blocks, block_sizes(g, g.matrices * g.rows * g.columns));
}

Tensor out_of_grid(const Tensor& blocks, const Grid& g, IntSpan sizes) {
  const IntVec split = joined(IntVec{g.matrices, g.rows, g.columns, g.height, g.width}, g.dense);
  IntVec order{0, 1, 3, 2, 4};
  for (size_t d = 0; d < g.dense.size(); ++d) order.push_back(5 + static_cast<int64_t>(d));
  return ops::reshape(ops::permute(ops::reshape(blocks, split), order), sizes);
}

Tensor compressed_of_blocks(Layout layout, IntSpan sizes, const Grid& g, const Tensor& given,
                            const Tensor& values, DType index_dtype) {
  const bool rows_first = by_rows(layout);
  const int64_t major = rows_first ? g.rows : g.columns, minor = rows_first ? g.columns : g.rows;
  const Tensor keys = rows_first ? given : turned(given, g.rows, g.columns);
  const Tensor order = cpu::sparse::stable_order(keys);
  const int64_t total = keys.numel(), n = g.matrices ? total / g.matrices : 0;
  const Tensor lines = numbers(total), plain = numbers(total);
  for (int64_t i = 0; i < total; ++i) {
    const int64_t key = keys.data<int64_t>()[order.data<int64_t>()[i]];
    lines.data<int64_t>()[i] = key / minor;
    plain.data<int64_t>()[i] = key % minor;
  }
  const Tensor ends = cpu::sparse::row_starts(lines, g.matrices * major);
  const Tensor starts = numbers(g.matrices * (major + 1));
  for (int64_t m = 0; m < g.matrices; ++m) {
    const int64_t* from = ends.data<int64_t>() + m * major;
    check(from[major] - from[0] == n, "Expect the same number of specified elements per batch.");
    for (int64_t r = 0; r <= major; ++r)
      starts.data<int64_t>()[m * (major + 1) + r] = from[r] - from[0];
  }
  const IntVec each = in_blocks(layout) ? IntVec{n, g.height, g.width} : IntVec(1, n);
  const Tensor sorted = ops::index_select(values, 0, order);
  const auto index = [&](const Tensor& t, int64_t length) {
    return ops::to(ops::reshape(t, joined(g.batch, IntVec(1, length))), index_dtype);
  };
  return compressed_tensor(layout, sizes, index(starts, major + 1), index(plain, n),
                           ops::reshape(sorted, joined(joined(g.batch, each), g.dense)));
}

Tensor dense_of_compressed(const Tensor& t) {
  const Grid g = grid_of(t);
  const Tensor flat = block_numbers(t);
  const Tensor values = ops::reshape(compressed(t).values, block_sizes(g, flat.numel()));
  return out_of_grid(summed_by_group(values, flat, g.matrices * g.rows * g.columns), g, t.sizes());
}

Tensor coo_of_compressed(const Tensor& t) {
  const Grid g = grid_of(t);
  check_kind(ErrorKind::NotImplemented, g.batch.empty(), "to_sparse: conversion of batched ",
             backend_name(t->layout), " tensors to Sparse is not implemented");
  const Tensor flat = block_numbers(t);
  const int64_t n = flat.numel(), cells = g.height * g.width;
  const int64_t shape[] = {2, n * cells};
  const Tensor indices = empty_tensor(shape, DType::Int64);
  int64_t* to = indices.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = flat.data<int64_t>()[i] / g.columns,
                  column = flat.data<int64_t>()[i] % g.columns;
    for (int64_t k = 0; k < cells; ++k) {
      to[i * cells + k] = row * g.height + k / g.width;
      to[n * cells + i * cells + k] = column * g.width + k % g.width;
    }
  }
  const Tensor values = ops::reshape(compressed(t).values, joined(n * cells, g.dense));
  // Elements of a CSR tensor stand in order; those of others are put into it.
  return coalesced(coo_tensor(t.sizes(), indices, values, false));
}

Tensor compressed_of(const Tensor& self, Layout layout, IntSpan blocksize, int64_t dense_dims) {
  if (is_coo(self)) return compressed_of_coo(self, layout, blocksize);
  if (is_strided(self)) {
    const int64_t batch = self.dim() - 2 - dense_dims;
    check(batch >= 0, "to_sparse: expected at least two dimensions that are not dense; got sizes ",
          str(self.sizes()));
    return compressed_of_strided(self, layout,
                                 grid(self.sizes(), batch, blocksize.empty() ? 1 : blocksize[0],
                                      blocksize.empty() ? 1 : blocksize[1]));
  }
  const Grid g = grid_of(self);
  const bool same_blocks = blocksize.empty() ? !in_blocks(self->layout)
                                             : blocksize[0] == g.height && blocksize[1] == g.width;
  if (!same_blocks) return compressed_of_coo(coo_of_compressed(self), layout, blocksize);
  const Compressed& c = compressed(self);
  const Tensor flat = block_numbers(self);
  return compressed_of_blocks(layout, self.sizes(), g, flat,
                              ops::reshape(c.values, block_sizes(g, flat.numel())),
                              c.compressed.dtype());
}

Tensor mask_compressed(const Tensor& self, const Tensor& mask) {
  check(same_sizes(self.sizes(), mask.sizes()), "sparse_mask(): operands have incompatible sizes; ",
        "self has size ", str(self.sizes()), " but mask has size ", str(mask.sizes()));
  if (!is_strided(self)) return mask_compressed(ops::to_dense(self), mask);
  const Grid g = grid_of(mask);
  const Tensor found = ops::index_select(in_grid(self, g), 0, block_numbers(mask));
  return with_values(mask, ops::reshape(found, compressed(mask).values.sizes()));
}

}  // namespace facula::sparse
