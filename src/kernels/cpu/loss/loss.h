// Losses of pairs of elements, reduced in the same pass, and their gradients.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // Whether all elements of a floating-point tensor lie from 0 to 1.
    bool are_probabilities(const Tensor& t);
    void mse_loss(const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out);
    void mse_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                           int64_t reduction, const Tensor& out);
    void smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta,
                        const Tensor& out);
    void smooth_l1_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                 int64_t reduction, double beta, const Tensor& out);
    void huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta,
                    const Tensor& out);
    void huber_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                             int64_t reduction, double delta, const Tensor& out);
    void soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction,
                          const Tensor& out);
    void soft_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                   int64_t reduction, const Tensor& out);
    void binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                              int64_t reduction, const Tensor& out);
    void binary_cross_entropy_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                       const Tensor& weight, int64_t reduction, const Tensor& out);)
inline constexpr KernelRef mse_loss_kernel = FACULA_BY_ISA(mse_loss);
inline constexpr KernelRef mse_loss_backward_kernel = FACULA_BY_ISA(mse_loss_backward);
inline constexpr KernelRef smooth_l1_loss_kernel = FACULA_BY_ISA(smooth_l1_loss);
inline constexpr KernelRef smooth_l1_loss_backward_kernel = FACULA_BY_ISA(smooth_l1_loss_backward);
inline constexpr KernelRef huber_loss_kernel = FACULA_BY_ISA(huber_loss);
inline constexpr KernelRef huber_loss_backward_kernel = FACULA_BY_ISA(huber_loss_backward);
inline constexpr KernelRef soft_margin_loss_kernel = FACULA_BY_ISA(soft_margin_loss);
inline constexpr KernelRef soft_margin_loss_backward_kernel =
    FACULA_BY_ISA(soft_margin_loss_backward);
inline constexpr KernelRef binary_cross_entropy_kernel = FACULA_BY_ISA(binary_cross_entropy);
inline constexpr KernelRef binary_cross_entropy_backward_kernel =
    FACULA_BY_ISA(binary_cross_entropy_backward);

}  // namespace facula::cpu
