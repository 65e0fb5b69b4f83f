// Reading and writing the elements that index tensors name.
//
// Every operator of the family is brought into one form: a loop over a shape in which the indexed
// tensor is seen with a stride of zero along the indexed dimensions, and a tensor of byte offsets,
// made and checked beforehand, says how far to step there.
#pragma once
#include "core/scalar.h"
#include "core/tensor.h"

namespace facula::cpu {

// One indexed dimension: how far an index steps, what it may be, and how errors speak of it.
struct IndexedDim {
  const Tensor* index;  // int64 or int32
  int64_t size;         // of the dimension
  int64_t stride;       // of the dimension, in elements
  int64_t shown_dim;    // in the error's text
  bool wrap;            // negative indices count from the end
};

// Makes the error for an index that lies outside.
using IndexError = Error (*)(int64_t index, const IndexedDim& dim);
Error index_out_of_bounds(int64_t index, const IndexedDim& dim);  // IndexError
Error index_out_of_bounds_runtime(int64_t index, const IndexedDim& dim);

// Sums of index * stride * itemsize over the dimensions, as a contiguous int64 tensor of the index
// tensors' common shape. Throws before anything was read or written.
Tensor byte_offsets(std::span<const IndexedDim> dims, size_t itemsize,
                    IndexError error = &index_out_of_bounds);

// out[p] = from[p] moved by offsets[p]; all three have the same sizes.
void gather_elements(const Tensor& out, const Tensor& from, const Tensor& offsets);
// The same along one dimension, by `d.index` of out's sizes, without a list of offsets. Throws
// what `error` makes once a part of `out` may have been written.
void gather_along(const Tensor& out, const Tensor& from, const IndexedDim& d, IndexError error);
// out = rows of a tensor whose dimensions but the first lie densely, by a vector of indices; out is
// contiguous. False where an index names no row.
bool take_dense_rows(const Tensor& from, const Tensor& index, const Tensor& out);
// to[p] moved by offsets[p] = values[p]; where several p meet, the last in order stays.
void scatter_elements(const Tensor& to, const Tensor& offsets, const Tensor& values);

// The same along one dimension, by an int64 `d.index` of values' sizes, without a list of offsets;
// where `add_op` names an operator it adds to what is there. Throws what `error` makes once a part
// of `to` may have been written.
void scatter_along(const Tensor& to, const Tensor& values, const IndexedDim& d, const char* add_op,
                   IndexError error);

enum class Reduction : uint8_t { Sum, Product, Maximum, Minimum };
// The same, combining with what is there; the order is fixed by the shapes. Not for half types.
void scatter_reduce_elements(const Tensor& to, const Tensor& offsets, const Tensor& values,
                             Reduction how, const char* op);

// to /= counts, where a count of zero stands for one; integers are rounded down. Not for half
// types.
void divide_by_counts(const Tensor& to, const Tensor& counts);

// How many elements are not zero.
int64_t count_nonzero_elements(const Tensor& contiguous);
// Their coordinates into the rows of result, sizes [rows, dims], as many as there is room for; not
// for a tensor without dimensions.
void nonzero_coordinates(const Tensor& contiguous, const Tensor& result);

// self[mask] in order, both contiguous and of one size; out is 1-d and large enough.
void compress(const Tensor& self, const Tensor& mask, const Tensor& out);
// out[mask] = source in order; RuntimeError where source has too few elements.
void spread(const Tensor& out, const Tensor& mask, const Tensor& source);
// out[mask] = value, broadcasting the mask; value holds one element of out's dtype.
void fill_masked(const Tensor& out, const Tensor& mask, const Tensor& value);

}  // namespace facula::cpu
