// What operators of linear algebra ask of their arguments, and the strides of their results.
#pragma once
#include <algorithm>

#include "dispatch/meta.h"

namespace facula::matrices {

inline void check_matrices(const Tensor& t, const char* op, const char* name = "A") {
  check(t.dim() >= 2, op, "(): ", name, " must have at least 2 dimensions; got ", t.dim());
}
inline void check_square(const Tensor& t, const char* op, const char* name = "A") {
  check_matrices(t, op, name);
  check(t.size(-1) == t.size(-2), op, "(): ", name, " must be square; got ", t.size(-2), " by ",
        t.size(-1));
}
inline void check_floating(const Tensor& t, const char* op) {
  check_kind(ErrorKind::NotImplemented, is_differentiable(t.dtype()), op,
             "(): A must be floating point or complex; got ", name(t.dtype()));
}
// The dtypes that LAPACK has.
inline void check_full_precision(const Tensor& t, const char* op) {
  const DType d = t.dtype();
  const bool full =
      d == DType::Float32 || d == DType::Float64 || d == DType::Complex64 || d == DType::Complex128;
  check_kind(ErrorKind::NotImplemented, full, op,
             "(): expected float32, float64, complex64 or complex128; got ", name(d));
}

// Leading sizes of a batch of matrices, with further ones behind them.
inline IntVec batch_and(const Tensor& t, std::initializer_list<int64_t> behind) {
  IntVec sizes(t.sizes().first(static_cast<size_t>(t.dim() - 2)));
  for (int64_t n : behind) sizes.push_back(n);
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
inline void column_result(Meta& m, int i, IntSpan sizes, DType dtype) {
  m.result(i, sizes, dtype, column_strides(sizes));
}

}  // namespace facula::matrices
