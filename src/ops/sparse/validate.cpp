#include "ops/sparse/validate.h"

#include <algorithm>
#include <atomic>

#include "kernels/cpu/sparse/indices.h"
#include "ops/create/copy.h"
#include "ops/shape/view.h"
#include "ops/sparse/layouts.h"

namespace facula::sparse {
namespace {

constinit std::atomic<bool> invariants_are_checked{false};

Tensor as_int64(const Tensor& t) { return ops::contiguous(ops::to(t, DType::Int64)); }

void check_index_dtype(const Tensor& t, const char* what) {
  check(t.dtype() == DType::Int32 || t.dtype() == DType::Int64, what,
        " must be an int32 or int64 tensor; got ", name(t.dtype()));
}

struct Names {
  const char *compressed, *plain, *compressed_dims, *plain_dims;
};
Names names_of(Layout l) {
  return by_rows(l) ? Names{"crow_indices", "col_indices", "nrows", "ncols"}
                    : Names{"ccol_indices", "row_indices", "ncols", "nrows"};
}

// One matrix of the batch: its compressed indices (rows + 1) and plain ones (n).
void check_matrix(const int64_t* starts, int64_t rows, const int64_t* plain, int64_t n,
                  int64_t columns, const Names& names) {
  check(starts[0] == 0, "`", names.compressed, "[..., 0] == 0` is not satisfied.");
  check(starts[rows] == n, "`", names.compressed, "[..., -1] == nnz` is not satisfied.");
  for (int64_t r = 0; r < rows; ++r) {
    int64_t length;
    check(!__builtin_sub_overflow(starts[r + 1], starts[r], &length) && length >= 0 &&
              length <= columns,
          "`0 <= ", names.compressed, "[..., 1:] - ", names.compressed,
          "[..., :-1] <= ", names.plain_dims, "` is not satisfied.");
  }
  for (int64_t i = 0; i < n; ++i)
    check(plain[i] >= 0 && plain[i] < columns, "`0 <= ", names.plain, " < ", names.plain_dims,
          "` is not satisfied.");
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = starts[r] + 1; i < starts[r + 1]; ++i)
      check(plain[i] > plain[i - 1], "`", names.plain, "[..., ", names.compressed,
            "[..., i - 1]:", names.compressed, "[..., i]] for all i = 1, ..., ",
            names.compressed_dims,
            " are sorted and distinct along the last dimension values` is not satisfied.");
}

void check_same_batch(const Tensor& t, IntSpan batch, const char* what) {
  check(same_sizes(t.sizes().first(batch.size()), batch), "all batch dimensions of ", what,
        " must equal ", str(batch), " of the size; got ", str(t.sizes()));
}

}  // namespace

bool checks_invariants() { return invariants_are_checked.load(std::memory_order_relaxed); }
void set_checks_invariants(bool on) { invariants_are_checked.store(on, std::memory_order_relaxed); }

void check_coo_shapes(const Tensor& indices, const Tensor& values) {
  check_kind(ErrorKind::NotImplemented, is_strided(indices) && is_strided(values),
             "sparse_coo_tensor(): indices and values must be strided tensors; got ",
             layout_name(indices->layout), " and ", layout_name(values->layout));
  check(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", str(indices.sizes()));
  check(indices.dtype() == DType::Int64, "indices must be an int64 tensor; got ",
        name(indices.dtype()));
  check(values.dim() >= 1 && indices.sizes()[1] == values.sizes()[0],
        "indices and values must have same nnz, but got nnz from indices: ", indices.sizes()[1],
        ", nnz from values: ", values.dim() ? values.sizes()[0] : 1);
  check(indices.device() == values.device(),
        "sparse_coo_tensor(): indices and values must be on one device; got ",
        str(indices.device()), " and ", str(values.device()));
}

void check_coo_sizes(const Tensor& indices, const Tensor& values, IntSpan sizes) {
  check_coo_shapes(indices, values);
  const int64_t sparse = indices.sizes()[0], dense = values.dim() - 1;
  const auto dims = static_cast<int64_t>(sizes.size());
  check(dims == sparse + dense, "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size)",
        " = ", dims, ", sparse_dim = ", sparse, ", dense_dim = ", dense);
  const IntVec expected = joined(values.sizes()[0], sizes.subspan(static_cast<size_t>(sparse)));
  check(same_sizes(expected, values.sizes()), "values has incorrect size, expected ", str(expected),
        ", got ", str(values.sizes()));
  checked_numel(sizes);
}

void check_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool ascends) {
  check_coo_sizes(indices, values, sizes);
  if (!indices.device().is_cpu()) return;
  const IntSpan sparse = sizes.first(static_cast<size_t>(indices.sizes()[0]));
  const Tensor flat = cpu::sparse::flat_positions(as_int64(indices), sparse);
  check(!ascends || cpu::sparse::strictly_ascending(flat),
        "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
}

void check_compressed_shapes(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                             IntSpan sizes, Layout layout) {
  const Names names = names_of(layout);
  const int64_t batch = compressed.dim() - 1, block = in_blocks(layout) ? 2 : 0;
  check(compressed.dim() >= 1, names.compressed, " must have dimensionality >= 1 but got ",
        compressed.dim());
  check(plain.dim() == compressed.dim(), names.compressed, " and ", names.plain,
        " dimensionalities must be equal but got ", compressed.dim(), " and ", plain.dim(),
        ", respectively");
  const int64_t dense = values.dim() - batch - block - 1;
  check(dense >= 0,
        "values must have dimensionality > sum of batch and block dimensionalities (=", batch,
        " + ", block, ") but got ", values.dim());
  const auto dims = static_cast<int64_t>(sizes.size());
  check(dims == batch + 2 + dense, "tensor dimensionality must be sum of batch, base, and dense ",
        "dimensionalities (=", batch, " + 2 + ", dense, ") but got ", dims);
  check_index_dtype(compressed, names.compressed);
  check(compressed.dtype() == plain.dtype(), names.compressed, " and ", names.plain,
        " must have the same dtype; got ", name(compressed.dtype()), " and ", name(plain.dtype()));
  check(compressed.device() == plain.device() && plain.device() == values.device(), "device of ",
        names.compressed, ", ", names.plain, " and values must be the same; got ",
        str(compressed.device()), ", ", str(plain.device()), " and ", str(values.device()));
}

void check_compressed(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                      IntSpan sizes, Layout layout) {
  check_compressed_shapes(compressed, plain, values, sizes, layout);
  checked_numel(sizes);
  const Names names = names_of(layout);
  const auto batch = static_cast<size_t>(compressed.dim() - 1);
  const IntSpan leading = sizes.first(batch);
  check_same_batch(compressed, leading, names.compressed);
  check_same_batch(plain, leading, names.plain);
  check_same_batch(values, leading, "values");
  const int64_t block[2] = {in_blocks(layout) ? values.sizes()[batch + 1] : 1,
                            in_blocks(layout) ? values.sizes()[batch + 2] : 1};
  const IntSpan base = sizes.subspan(batch, 2);
  check(block[0] > 0 && block[1] > 0 && base[0] % block[0] == 0 && base[1] % block[1] == 0,
        "tensor shape[", batch, "] (=", base[0], ") and shape[", batch + 1, "] (=", base[1],
        ") must be divisible with blocksize[0] (=", block[0], ") and blocksize[1] (=", block[1],
        ") as defined by values shape");
  const size_t first_dense = batch + 1 + (in_blocks(layout) ? 2 : 0);
  check(same_sizes(values.sizes().subspan(first_dense), sizes.subspan(batch + 2)),
        "values must have the dense sizes ", str(sizes.subspan(batch + 2)), "; got ",
        str(values.sizes()));
  const bool rows_first = by_rows(layout);
  const int64_t rows = rows_first ? base[0] / block[0] : base[1] / block[1];
  const int64_t columns = rows_first ? base[1] / block[1] : base[0] / block[0];
  const int64_t n = values.sizes()[batch];
  check(compressed.size(-1) == rows + 1, names.compressed,
        ".shape[-1] must be equal to the number ", "of ", rows_first ? "rows" : "columns",
        " + 1 (=", rows + 1, "), but got ", compressed.size(-1));
  check(plain.size(-1) == n, names.plain, ".shape[-1] must be equal to nnz (=", n,
        ") as defined by values.shape[", batch, "], but got ", plain.size(-1));
  if (!compressed.device().is_cpu()) return;
  const Tensor starts = as_int64(compressed), others = as_int64(plain);
  const int64_t matrices = checked_numel(leading);
  for (int64_t m = 0; m < matrices; ++m)
    check_matrix(starts.data<int64_t>() + m * (rows + 1), rows, others.data<int64_t>() + m * n, n,
                 columns, names);
}

}  // namespace facula::sparse
