// Pooling in one to three dimensions, over dense and channels-last tensors.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    void max_pool2d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                    IntSpan dilation, bool ceil_mode, const Tensor& out, const Tensor& indices);
    void max_pool3d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                    IntSpan dilation, bool ceil_mode, const Tensor& out, const Tensor& indices);
    void adaptive_max_pool2d(const Tensor& self, IntSpan output_size, const Tensor& out,
                             const Tensor& indices);
    void adaptive_max_pool3d(const Tensor& self, IntSpan output_size, const Tensor& out,
                             const Tensor& indices);
    void avg_pool2d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                    bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor,
                    const Tensor& out);
    void avg_pool3d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                    bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor,
                    const Tensor& out);
    void avg_pool2d_backward(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                             IntSpan padding, bool ceil_mode, bool count_include_pad,
                             std::optional<int64_t> divisor, const Tensor& out);
    void avg_pool3d_backward(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                             IntSpan padding, bool ceil_mode, bool count_include_pad,
                             std::optional<int64_t> divisor, const Tensor& out);
    void adaptive_avg_pool2d(const Tensor& self, IntSpan output_size, const Tensor& out);
    void adaptive_avg_pool3d(const Tensor& self, IntSpan output_size, const Tensor& out);
    void adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& self, const Tensor& out);
    void adaptive_avg_pool3d_backward(const Tensor& grad, const Tensor& self, const Tensor& out);)

inline constexpr KernelRef max_pool2d_kernel = FACULA_BY_ISA(max_pool2d);
inline constexpr KernelRef max_pool3d_kernel = FACULA_BY_ISA(max_pool3d);
inline constexpr KernelRef adaptive_max_pool2d_kernel = FACULA_BY_ISA(adaptive_max_pool2d);
inline constexpr KernelRef adaptive_max_pool3d_kernel = FACULA_BY_ISA(adaptive_max_pool3d);
inline constexpr KernelRef avg_pool2d_kernel = FACULA_BY_ISA(avg_pool2d);
inline constexpr KernelRef avg_pool3d_kernel = FACULA_BY_ISA(avg_pool3d);
inline constexpr KernelRef avg_pool2d_backward_kernel = FACULA_BY_ISA(avg_pool2d_backward);
inline constexpr KernelRef avg_pool3d_backward_kernel = FACULA_BY_ISA(avg_pool3d_backward);
inline constexpr KernelRef adaptive_avg_pool2d_kernel = FACULA_BY_ISA(adaptive_avg_pool2d);
inline constexpr KernelRef adaptive_avg_pool3d_kernel = FACULA_BY_ISA(adaptive_avg_pool3d);
inline constexpr KernelRef adaptive_avg_pool2d_backward_kernel =
    FACULA_BY_ISA(adaptive_avg_pool2d_backward);
inline constexpr KernelRef adaptive_avg_pool3d_backward_kernel =
    FACULA_BY_ISA(adaptive_avg_pool3d_backward);

// --- built once

// Puts the gradient of each window's maximum where it came from: max_pool, adaptive and fractional
// pooling alike. Indices count within a plane or volume; RuntimeError when one lies outside.
void max_pool_backward(const Tensor& grad, const Tensor& indices, int64_t spatial,
                       const Tensor& out, const char* op);
// The same walk for max_unpool: values to the places that indices name; the rest is zero.
void max_unpool(const Tensor& self, const Tensor& indices, int64_t spatial, const Tensor& out,
                const char* op);

void fractional_max_pool2d(const Tensor& self, IntSpan kernel, IntSpan output_size,
                           const Tensor& samples, const Tensor& out, const Tensor& indices);
void fractional_max_pool3d(const Tensor& self, IntSpan kernel, IntSpan output_size,
                           const Tensor& samples, const Tensor& out, const Tensor& indices);

}  // namespace facula::cpu
