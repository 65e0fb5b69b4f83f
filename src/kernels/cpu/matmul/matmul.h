// Matrix products over tensors, by way of the packed kernels of gemm.h.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // out = beta * self + alpha * mat1 @ mat2; self broadcasts. With beta 0, self is not read.
    void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
               const Scalar& alpha, const Tensor& out);
    // The relu of that, or its gelu.
    void addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                          const Scalar& beta, const Scalar& alpha, bool use_gelu,
                          const Tensor& out);
    void mm(const Tensor& self, const Tensor& mat2, const Tensor& out);
    void addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
               const Scalar& alpha, const Tensor& out);
    void mv(const Tensor& self, const Tensor& vec, const Tensor& out);
    void dot(const Tensor& self, const Tensor& tensor, const Tensor& out);
    void bmm(const Tensor& self, const Tensor& mat2, const Tensor& out);
    void baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                 const Scalar& alpha, const Tensor& out);)

inline constexpr KernelRef addmm_kernel = FACULA_BY_ISA(addmm);
inline constexpr KernelRef addmm_activation_kernel = FACULA_BY_ISA(addmm_activation);
inline constexpr KernelRef mm_kernel = FACULA_BY_ISA(mm);
inline constexpr KernelRef addmv_kernel = FACULA_BY_ISA(addmv);
inline constexpr KernelRef mv_kernel = FACULA_BY_ISA(mv);
inline constexpr KernelRef dot_kernel = FACULA_BY_ISA(dot);
inline constexpr KernelRef bmm_kernel = FACULA_BY_ISA(bmm);
inline constexpr KernelRef baddbmm_kernel = FACULA_BY_ISA(baddbmm);

}  // namespace facula::cpu
