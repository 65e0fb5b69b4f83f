// Geometry of views: what several families need to compute sizes and strides.
#pragma once
#include <optional>

#include "core/tensor.h"
#include "dispatch/rules.h"

namespace facula::geometry {

// Replaces one -1 by what fits numel; RuntimeError with PyTorch's text when nothing does.
IntVec infer_size(IntSpan wanted, int64_t numel);
// Strides with which memory of the given geometry can be seen in new sizes, or none.
std::optional<IntVec> view_strides(IntSpan sizes, IntSpan strides, IntSpan wanted);
// Whether no layer but the backend would see an operator on this tensor.
bool seen_by_backend_alone(const Tensor& t);
// Whether nobody but autograd looks at the operators that a composite is made of: no mode, no
// transform, no subclass.
bool seen_by_autograd_alone(const Tensor& t);
// The view of a matrix with its dimensions swapped, made without a call.
Tensor swapped(const Tensor& matrix);
// Dimensions wrapped and checked for repeats; RuntimeError names the repeated one.
IntVec wrap_dims(IntSpan dims, int64_t ndim);
// A copy with the same geometry, gaps included, so that views of it fit as they did the tensor.
Tensor copy_of_memory(const Tensor& self);
// Python's slice bounds in a dimension, clamped: start, end, with step > 0.
struct Bounds {
  int64_t start, length;
};
Bounds slice_bounds(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                    std::optional<int64_t> end, int64_t step);
// An index of a dimension, from its start; IndexError outside of it.
int64_t place_of_index(const Tensor& self, int64_t dim, int64_t index);
// RuntimeError where the headers of so many tensors are more than the memory of the process.
void check_parts_fit(int64_t count, const char* op);
// The gradient of as_strided: scattered into memory laid out as the input's storage was.
Tensor as_strided_backward(const Tensor& grad, IntSpan size, IntSpan stride, int64_t offset,
                           IntSpan out_size, IntSpan out_stride, int64_t out_offset);
// Its transpose, for the record's derivative: into memory by the input's geometry, each place as
// often as it was divided, and out of it by the output's.
Tensor as_strided_backward_gradient(Backward& b);

// Views of complex numbers as pairs of real ones, and of pairs as complex numbers.
Tensor view_as_real(const Tensor& self);
Tensor view_as_complex(const Tensor& self);

}  // namespace facula::geometry
