// Tensors of compressed layouts as lists of blocks, and between them and other layouts.
#pragma once
#include <optional>

#include "core/tensor.h"
#include "ops/sparse/layouts.h"

namespace facula::sparse {

// A compressed tensor's matrices as grids of blocks; elements of CSR and CSC are blocks of one.
struct Grid {
  IntVec batch;           // leading sizes
  int64_t matrices;       // their product
  int64_t rows, columns;  // in blocks
  int64_t height, width;  // of a block
  IntVec dense;           // trailing sizes
};
Grid grid_of(const Tensor& t);
// How many blocks each matrix keeps.
int64_t blocks_each(const Compressed& c);

// The number of each kept block among (matrices, rows, columns), in the order of the values;
// checked.
Tensor block_numbers(const Tensor& t);
// A strided tensor (of the grid's whole size) as blocks (matrices * rows * columns, height, width,
// dense...), and back.
Tensor in_grid(const Tensor& strided, const Grid& g);
Tensor out_of_grid(const Tensor& blocks, const Grid& g, IntSpan sizes);

// A tensor of blocks (n, [height, width], dense...) by number. RuntimeError unless all matrices of
// the batch have as many.
Tensor compressed_of_blocks(Layout layout, IntSpan sizes, const Grid& g, const Tensor& numbers,
                            const Tensor& values, DType index_dtype);

Tensor dense_of_compressed(const Tensor& t);
Tensor coo_of_compressed(const Tensor& t);
Tensor compressed_of(const Tensor& self, Layout layout, IntSpan blocksize, int64_t dense_dims);
// The values of `self` at the positions of `mask`.
Tensor mask_compressed(const Tensor& self, const Tensor& mask);

}  // namespace facula::sparse
