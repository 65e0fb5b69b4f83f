// Softmax and log-softmax over one dimension, and their gradients. Tensors are contiguous.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(void softmax(const Tensor& self, int64_t dim, bool half_to_float, const Tensor& out);
               void log_softmax(const Tensor& self, int64_t dim, bool half_to_float,
                                const Tensor& out);
               void softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim,
                                     DType input_dtype, const Tensor& out);
               void log_softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim,
                                         DType input_dtype, const Tensor& out);)
inline constexpr KernelRef softmax_kernel = FACULA_BY_ISA(softmax);
inline constexpr KernelRef log_softmax_kernel = FACULA_BY_ISA(log_softmax);
inline constexpr KernelRef softmax_backward_kernel = FACULA_BY_ISA(softmax_backward);
inline constexpr KernelRef log_softmax_backward_kernel = FACULA_BY_ISA(log_softmax_backward);

}  // namespace facula::cpu
