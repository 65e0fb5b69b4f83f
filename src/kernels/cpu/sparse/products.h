// Products of sparse matrices with dense ones.
#pragma once
#include "core/tensor.h"

namespace facula::cpu::sparse {

// What several elements of a row become in a result.
enum class Reduce : uint8_t { Sum, Mean, Amax, Amin };

// A sparse matrix by rows: elements of row r stand from starts[r] to starts[r + 1]. All contiguous,
// indices int64 and checked by `check_rows`.
struct RowMatrix {
  Tensor starts;   // (rows + 1)
  Tensor columns;  // (n)
  Tensor values;   // (n), of the dense matrix's dtype
};

// out (rows, width) = matrix times dense (columns, width); out is written whole. All of one dtype.
void multiply(const RowMatrix& m, const Tensor& dense, const Tensor& out);
// As multiply, with the products of a row reduced otherwise. Rows without elements give 0. `chosen`
// (rows, width), for Amax and Amin, becomes the element that each result comes from, -1 for none.
void multiply_reduce(const RowMatrix& m, const Tensor& dense, Reduce how, const Tensor& out,
                     const Tensor& chosen);
// out (n) = products of row rows[i] of a (., width) and row columns[i] of b (., width).
void sampled_products(const Tensor& rows, const Tensor& columns, const Tensor& a, const Tensor& b,
                      const Tensor& out);

}  // namespace facula::cpu::sparse
