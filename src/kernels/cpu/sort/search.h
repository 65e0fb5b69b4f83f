// What is found by order: positions in sorted sequences, distinct values, counts.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "core/scalar.h"
#include "core/tensor.h"

namespace facula::cpu {

using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;

// Positions of values in rows of `sorted` (one row for all where it is 1-d). All contiguous, of one
// dtype but `sorter` (int64 or undefined); out is int64 or int32.
void search_sorted(const Tensor& sorted, const Tensor& values, bool right, const Tensor& sorter,
                   const Tensor& out);
// Distinct values in order; the place of each element among them; how often each is there. The
// last two are empty unless asked for. `consecutive` compares neighbours only.
TensorTriple unique_values(const Tensor& self, bool consecutive, bool inverse, bool counts,
                           const char* op);
// The same for the slices along a dimension.
TensorTriple unique_slices(const Tensor& self, int64_t dim, bool consecutive, bool inverse,
                           bool counts, const char* op);
// How often each integer from zero on is there, or the sums of weights.
// RuntimeError for arguments that bincount does not take.
void check_bincount(const Tensor& self, const Tensor& weights, int64_t minlength);
Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength);
void histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max,
           const Tensor& out);
// Whether elements are among test_elements: contiguous, one dtype.
void is_in(const Tensor& elements, const Tensor& test_elements, bool invert, const Tensor& out);

}  // namespace facula::cpu
