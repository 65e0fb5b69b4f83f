// Shape rules that the pooling operators share. Texts name the operator `op`.
#pragma once
#include <string>

#include "core/tensor.h"

namespace facula::pool {

// The numbers of a sliding window, one for each spatial dimension.
struct Window {
  IntVec kernel, stride, padding, dilation;
};
// Expands single numbers; an empty stride means the kernel's size. RuntimeError on bad numbers.
Window window(const std::string& op, int64_t spatial, IntSpan kernel, IntSpan stride,
              IntSpan padding, IntSpan dilation);
// Sizes of the result of pooling; RuntimeError when the input has no such shape.
IntVec result_sizes(const std::string& op, const Tensor& self, int64_t spatial, const Window& w,
                    bool ceil_mode);
// `channels` says whether there must be any.
IntVec adaptive_sizes(const std::string& op, const Tensor& self, int64_t spatial,
                      IntSpan output_size, bool channels);
IntVec fractional_sizes(const std::string& op, const Tensor& self, int64_t spatial, IntSpan kernel,
                        IntSpan output_size, const Tensor& samples);
IntVec unpooled_sizes(const std::string& op, const Tensor& self, const Tensor& indices,
                      int64_t spatial, IntSpan output_size);

void check_same_shape(const std::string& op, const char* what, const Tensor& t, IntSpan sizes);
void check_grad(const std::string& op, const Tensor& grad, const Tensor& self, IntSpan sizes);
// A gradient of any spatial size, as adaptive pooling has it.
void check_adaptive_grad(const std::string& op, const Tensor& grad, const Tensor& self,
                         int64_t spatial);

// Channels-last inputs give channels-last results; without a batch, results are contiguous. In
// three dimensions PyTorch does so for sliding maxima alone.
MemoryFormat format(const Tensor& self, int64_t spatial);

}  // namespace facula::pool
