// What shape rules of linear algebra check, and the strides that LAPACK gives results.
#pragma once
#include <algorithm>

#include "core/error.h"
#include "core/tensor.h"

namespace facula::linalg {

inline void check_matrices(const Tensor& t, const char* op, const char* name) {
  check(t.dim() >= 2, op, "(): ", name, " must have at least 2 dimensions; got ", t.dim());
}
inline void check_square(const Tensor& A, const char* op) {
  check_matrices(A, op, "A");
  check(A.size(-1) == A.size(-2), op, "(): A must be square; got ", A.size(-2), " by ", A.size(-1));
}
inline void check_solvable(DType d, const char* op) {
  const bool full =
      d == DType::Float32 || d == DType::Float64 || d == DType::Complex64 || d == DType::Complex128;
  check_kind(ErrorKind::NotImplemented, full, op,
             "(): expected float32, float64, complex64 or complex128; got ", name(d));
}
inline void check_floating(DType d, const char* op) {
  check_kind(ErrorKind::NotImplemented, is_differentiable(d), op,
             "(): A must be floating point or complex; got ", name(d));
}
inline void check_same_dtype(const Tensor& A, const Tensor& B, const char* op) {
  check(A.dtype() == B.dtype(), op, "(): A and B must have one dtype; got ", name(A.dtype()),
        " and ", name(B.dtype()));
}

// Sizes of the batch.
inline IntSpan leading(IntSpan sizes) { return sizes.first(sizes.size() - 2); }
inline IntSpan leading(const Tensor& t) { return leading(t.sizes()); }
inline IntVec with_sizes(IntSpan batch, std::initializer_list<int64_t> last) {
  IntVec sizes(batch);
  for (int64_t n : last) sizes.push_back(n);
  return sizes;
}

// Strides of matrices that stand column by column, as LAPACK leaves them.
inline IntVec column_strides(IntSpan sizes) {
  IntVec strides = contiguous_strides(sizes);
  const size_t n = sizes.size();
  strides[n - 2] = 1;
  strides[n - 1] = std::max<int64_t>(sizes[n - 2], 1);
  return strides;
}

}  // namespace facula::linalg
