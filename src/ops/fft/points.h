// What the public transforms make of their arguments: norm, n or s, dim, and the input's dtype.
#pragma once
#include <optional>
#include <string_view>

#include "core/tensor.h"

namespace facula::fft {

using Norm = std::optional<std::string_view>;
using Points = std::optional<int64_t>;
using Shape = std::optional<IntSpan>;

// The primitives' number for "backward" (the default), "ortho" or "forward".
int64_t normalization(const Norm& norm, bool forward);

// The input in the dtype of its transform: integers become the default dtype, and where `complex`
// is set real numbers become complex. NotImplementedError for half types on the CPU.
Tensor promoted(const Tensor& self, bool complex);

// A dimension of a tensor that has one; IndexError otherwise.
int64_t existing_dim(const Tensor& self, int64_t dim);

// RuntimeError unless there is a point at least.
void check_points(int64_t n);

// Cut, or continued with zeros, to `sizes` along `dims`.
Tensor resized(const Tensor& self, IntSpan dims, IntSpan sizes);

// The dimensions of a transform and how many points each has.
struct Extent {
  IntVec dims, sizes;
};
// With neither, all of self; `halved` says that the last dimension holds half of a transform's
// coefficients, so that it has 2 (size - 1) points where none are given.
Extent extent_of(const Tensor& self, const Shape& s, const Shape& dim, bool halved = false);

}  // namespace facula::fft
