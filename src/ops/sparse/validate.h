// Whether given parts make a tensor of a sparse layout: RuntimeError where they do not.
#pragma once
#include "core/tensor.h"

namespace facula::sparse {

// Shapes and dtypes of indices (sparse dims, nnz) and values (nnz, dense...) alone.
void check_coo_shapes(const Tensor& indices, const Tensor& values);
// The shapes against sizes as well.
void check_coo_sizes(const Tensor& indices, const Tensor& values, IntSpan sizes);
// Everything: each index too, and that positions ascend where that is claimed.
void check_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool ascends);

// Dimensions, dtypes and devices of the parts of a compressed layout alone.
void check_compressed_shapes(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                             IntSpan sizes, Layout layout);
// The invariants of compressed layouts: shapes, dtypes, and that indices ascend within bounds.
void check_compressed(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                      IntSpan sizes, Layout layout);

// Whether makers check all of it (sparse.check_sparse_tensor_invariants).
bool checks_invariants();
void set_checks_invariants(bool on);

}  // namespace facula::sparse
