// Layer, RMS, group and batch normalisation. Sums run over fixed lanes and chunks, in float for
// half types. Results that the caller left undefined are not computed.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    void native_layer_norm(const Tensor& input, IntSpan shape, const Tensor& weight,
                           const Tensor& bias, double eps, const Tensor& out, const Tensor& mean,
                           const Tensor& rstd);
    void native_layer_norm_backward(const Tensor& grad, const Tensor& input, IntSpan shape,
                                    const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                    const Tensor& bias, std::span<const bool> mask,
                                    const Tensor& grad_input, const Tensor& grad_weight,
                                    const Tensor& grad_bias);
    void fused_rms_norm(const Tensor& input, IntSpan shape, const Tensor& weight,
                        std::optional<double> eps, const Tensor& out, const Tensor& rstd);
    void fused_rms_norm_backward(const Tensor& grad, const Tensor& input, IntSpan shape,
                                 const Tensor& rstd, const Tensor& weight,
                                 std::span<const bool> mask, const Tensor& grad_input,
                                 const Tensor& grad_weight);
    void native_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                           int64_t c, int64_t hxw, int64_t group, double eps, const Tensor& out,
                           const Tensor& mean, const Tensor& rstd);
    void native_group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                    const Tensor& rstd, const Tensor& weight, int64_t n, int64_t c,
                                    int64_t hxw, int64_t group, std::span<const bool> mask,
                                    const Tensor& grad_input, const Tensor& grad_weight,
                                    const Tensor& grad_bias);
    void native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           const Tensor& running_mean, const Tensor& running_var, bool training,
                           double momentum, double eps, const Tensor& out, const Tensor& mean,
                           const Tensor& invstd);
    void native_batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                    const Tensor& running_mean, const Tensor& running_var,
                                    const Tensor& save_mean, const Tensor& save_invstd, bool train,
                                    double eps, std::span<const bool> mask,
                                    const Tensor& grad_input, const Tensor& grad_weight,
                                    const Tensor& grad_bias);)
inline constexpr KernelRef layer_norm_kernel = FACULA_BY_ISA(native_layer_norm);
inline constexpr KernelRef layer_norm_backward_kernel = FACULA_BY_ISA(native_layer_norm_backward);
inline constexpr KernelRef rms_norm_kernel = FACULA_BY_ISA(fused_rms_norm);
inline constexpr KernelRef rms_norm_backward_kernel = FACULA_BY_ISA(fused_rms_norm_backward);
inline constexpr KernelRef group_norm_kernel = FACULA_BY_ISA(native_group_norm);
inline constexpr KernelRef group_norm_backward_kernel = FACULA_BY_ISA(native_group_norm_backward);
inline constexpr KernelRef batch_norm_kernel = FACULA_BY_ISA(native_batch_norm);
inline constexpr KernelRef batch_norm_backward_kernel = FACULA_BY_ISA(native_batch_norm_backward);

}  // namespace facula::cpu
