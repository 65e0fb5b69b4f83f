// What operators that take index tensors share.
#pragma once
#include <initializer_list>

#include "dispatch/meta.h"
#include "kernels/cpu/index/index.h"

namespace facula::indexed {

// A tensor's geometry with at least one dimension.
Tensor at_least_1d(const Tensor& t);
// Memory of `t` seen with other sizes and a stride of zero along `dim`.
Tensor still(const Tensor& t, IntSpan sizes, int64_t dim);
// A 1-d tensor of offsets along one dimension of the given sizes, repeated over the others.
Tensor spread_along(const Tensor& offsets, IntSpan sizes, int64_t dim);
// One element of `dtype` holding a number; RuntimeError when it does not fit.
Tensor element(const Scalar& value, DType dtype);
// `read` itself, or a copy of it where writing to the other tensor could change it.
Tensor apart_from(const Tensor& read, const Tensor& written);
// For operators whose written tensor (out= or self) is never cast to and must lie apart from the
// arguments at the given positions.
void check_out(const Meta& m, DType dtype, std::initializer_list<int> apart);
// For cat and stack: out= must hold the dtype and lie apart from every tensor.
void check_join(const Meta& m, std::span<const Tensor> tensors, DType dtype);
void check_cpu(const Tensor& t, const char* op);
// self's values into out, unless they are one tensor.
void start_from(const Tensor& self, const Tensor& out);
// `t` where arithmetic can happen in it, else a copy in float or complex64 (half types).
Tensor widened(const Tensor& t);

}  // namespace facula::indexed
