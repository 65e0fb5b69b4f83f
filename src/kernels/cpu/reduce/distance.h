// Distances between rows by p-norms.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // x1 (..., P, M) and x2 (..., R, M), batches broadcast, give (..., P, R).
    void cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode,
               const Tensor& out);
    void cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                        const Tensor& distances, const Tensor& out);
    // Distances of the rows of one matrix, (0, 1), (0, 2), ..., (1, 2), ...
    void pdist(const Tensor& self, double p, const Tensor& out);
    void pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& distances,
                        const Tensor& out);)

inline constexpr KernelRef cdist_kernel = FACULA_BY_ISA(cdist);
inline constexpr KernelRef cdist_backward_kernel = FACULA_BY_ISA(cdist_backward);
inline constexpr KernelRef pdist_kernel = FACULA_BY_ISA(pdist);
inline constexpr KernelRef pdist_backward_kernel = FACULA_BY_ISA(pdist_backward);

}  // namespace facula::cpu
