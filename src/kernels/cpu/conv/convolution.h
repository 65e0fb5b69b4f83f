// Convolutions over tensors, by way of conv/core.h.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(void convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                IntSpan stride, IntSpan padding, IntSpan dilation, bool transposed,
                                IntSpan output_padding, int64_t groups, const Tensor& out);
               // Results that the mask leaves out are undefined.
               void convolution_backward(const Tensor& grad_output, const Tensor& input,
                                         const Tensor& weight, IntSpan bias_sizes, IntSpan stride,
                                         IntSpan padding, IntSpan dilation, bool transposed,
                                         IntSpan output_padding, int64_t groups,
                                         std::span<const bool> output_mask,
                                         const Tensor& grad_input, const Tensor& grad_weight,
                                         const Tensor& grad_bias);)

inline constexpr KernelRef convolution_kernel = FACULA_BY_ISA(convolution);
inline constexpr KernelRef convolution_backward_kernel = FACULA_BY_ISA(convolution_backward);

}  // namespace facula::cpu
