// Products of sparse matrices with dense ones, and with each other.
#pragma once
#include "core/tensor.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {
namespace sparse {

// What several elements of a row become in a result.
enum class Reduce : uint8_t { Sum, Mean, Amax, Amin };

// A sparse matrix by rows of blocks: those of block row r stand from starts[r] to starts[r + 1].
// Elements of CSR are blocks of one. All contiguous, indices int64.
struct RowMatrix {
  Tensor starts;                  // (block rows + 1), checked by `check_starts`
  Tensor columns;                 // (n): block columns, which the products check
  Tensor values;                  // (n, height, width), of the dtype of the other matrix
  int64_t height = 1, width = 1;  // of a block
};

// The product of two matrices whose blocks are single elements, `columns` wide, all of one dtype:
// the columns of each row ascend.
RowMatrix multiply_sparse(const RowMatrix& a, const RowMatrix& b, int64_t columns);

}  // namespace sparse

FACULA_PER_ISA(
    // out (rows, n) = matrix times dense (columns, n); out is written whole. All of one dtype.
    void multiply_rows(const sparse::RowMatrix& m, const Tensor& dense, const Tensor& out);
    // As multiply_rows, of single elements, with the products of a row reduced otherwise. Rows
    // without elements give 0. `chosen` (rows, n), for Amax and Amin, becomes the element that each
    // result comes from, -1 for none.
    void reduce_rows(const sparse::RowMatrix& m, const Tensor& dense, sparse::Reduce how,
                     const Tensor& out, const Tensor& chosen);
    // out (n) = products of row rows[i] of a (., width) and row columns[i] of b (., width).
    void sampled_products(const Tensor& rows, const Tensor& columns, const Tensor& a,
                          const Tensor& b, const Tensor& out);)

}  // namespace facula::cpu
