// Optimizer steps over lists of parameters: one pass over each parameter, its gradient and state.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

using TensorSpan = std::span<const Tensor>;

FACULA_PER_ISA(
    void fused_adam(TensorSpan params, TensorSpan grads, TensorSpan avgs, TensorSpan squares,
                    TensorSpan maxima, TensorSpan steps, const Value& lr, double beta1,
                    double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                    const Tensor& grad_scale, const Tensor& found_inf);
    void fused_adamw(TensorSpan params, TensorSpan grads, TensorSpan avgs, TensorSpan squares,
                     TensorSpan maxima, TensorSpan steps, const Value& lr, double beta1,
                     double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                     const Tensor& grad_scale, const Tensor& found_inf);
    void fused_sgd(TensorSpan params, TensorSpan grads, TensorSpan buffers, double weight_decay,
                   double momentum, const Value& lr, double dampening, bool nesterov, bool maximize,
                   bool is_first_step, const Tensor& grad_scale, const Tensor& found_inf);
    void fused_adagrad(TensorSpan params, TensorSpan grads, TensorSpan sums, TensorSpan steps,
                       const Value& lr, double lr_decay, double weight_decay, double eps,
                       bool maximize, const Tensor& grad_scale, const Tensor& found_inf);)
inline constexpr KernelRef fused_adam_kernel = FACULA_BY_ISA(fused_adam);
inline constexpr KernelRef fused_adamw_kernel = FACULA_BY_ISA(fused_adamw);
inline constexpr KernelRef fused_sgd_kernel = FACULA_BY_ISA(fused_sgd);
inline constexpr KernelRef fused_adagrad_kernel = FACULA_BY_ISA(fused_adagrad);

}  // namespace facula::cpu
