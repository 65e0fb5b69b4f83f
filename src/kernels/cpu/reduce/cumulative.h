// Running sums, products, extrema and log-sum-exps along one dimension; results are contiguous.
#pragma once
#include <optional>

#include "core/tensor.h"
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    void cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out);
    void cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out);
    void cummax(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices);
    void cummin(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices);
    void logcumsumexp(const Tensor& self, int64_t dim, const Tensor& out);)

inline constexpr KernelRef cumsum_kernel = FACULA_BY_ISA(cumsum);
inline constexpr KernelRef cumprod_kernel = FACULA_BY_ISA(cumprod);
inline constexpr KernelRef cummax_kernel = FACULA_BY_ISA(cummax);
inline constexpr KernelRef cummin_kernel = FACULA_BY_ISA(cummin);
inline constexpr KernelRef logcumsumexp_kernel = FACULA_BY_ISA(logcumsumexp);

}  // namespace facula::cpu
