// Reductions over any dimensions; `out` is contiguous, its sizes follow from dim and keepdim.
#pragma once
#include <optional>

#include "core/scalar.h"
#include "core/tensor.h"
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    void sum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
             std::optional<DType> dtype, const Tensor& out);
    void nansum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
                std::optional<DType> dtype, const Tensor& out);
    void mean(const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
              std::optional<DType> dtype, const Tensor& out);
    void prod(const Tensor& self, std::optional<DType> dtype, const Tensor& out);
    void prod_dim(const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype,
                  const Tensor& out);
    void count_nonzero(const Tensor& self, IntSpan dim, const Tensor& out);

    void amin(const Tensor& self, IntSpan dim, bool keepdim, const Tensor& out);
    void amax(const Tensor& self, IntSpan dim, bool keepdim, const Tensor& out);
    void min_all(const Tensor& self, const Tensor& out);
    void max_all(const Tensor& self, const Tensor& out);
    void aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& low,
                 const Tensor& high);
    void any(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, const Tensor& out);
    void all(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, const Tensor& out);

    void var(const Tensor& self, std::optional<IntSpan> dim,
             const std::optional<Scalar>& correction, bool keepdim, const Tensor& out);
    void deviation(const Tensor& self, std::optional<IntSpan> dim,
                   const std::optional<Scalar>& correction, bool keepdim, const Tensor& out);
    void var_mean(const Tensor& self, std::optional<IntSpan> dim,
                  const std::optional<Scalar>& correction, bool keepdim, const Tensor& out,
                  const Tensor& mean);
    void deviation_mean(const Tensor& self, std::optional<IntSpan> dim,
                        const std::optional<Scalar>& correction, bool keepdim, const Tensor& out,
                        const Tensor& mean);
    void vector_norm(const Tensor& self, const Scalar& ord, std::optional<IntSpan> dim,
                     bool keepdim, std::optional<DType> dtype, const Tensor& out);

    void min_dim(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                 const Tensor& indices);
    void max_dim(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                 const Tensor& indices);
    void argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& out);
    void argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& out);)

inline constexpr KernelRef sum_kernel = FACULA_BY_ISA(sum);
inline constexpr KernelRef nansum_kernel = FACULA_BY_ISA(nansum);
inline constexpr KernelRef mean_kernel = FACULA_BY_ISA(mean);
inline constexpr KernelRef prod_kernel = FACULA_BY_ISA(prod);
inline constexpr KernelRef prod_dim_kernel = FACULA_BY_ISA(prod_dim);
inline constexpr KernelRef count_nonzero_kernel = FACULA_BY_ISA(count_nonzero);
inline constexpr KernelRef amin_kernel = FACULA_BY_ISA(amin);
inline constexpr KernelRef amax_kernel = FACULA_BY_ISA(amax);
inline constexpr KernelRef min_all_kernel = FACULA_BY_ISA(min_all);
inline constexpr KernelRef max_all_kernel = FACULA_BY_ISA(max_all);
inline constexpr KernelRef aminmax_kernel = FACULA_BY_ISA(aminmax);
inline constexpr KernelRef any_kernel = FACULA_BY_ISA(any);
inline constexpr KernelRef all_kernel = FACULA_BY_ISA(all);
inline constexpr KernelRef var_kernel = FACULA_BY_ISA(var);
inline constexpr KernelRef deviation_kernel = FACULA_BY_ISA(deviation);
inline constexpr KernelRef var_mean_kernel = FACULA_BY_ISA(var_mean);
inline constexpr KernelRef deviation_mean_kernel = FACULA_BY_ISA(deviation_mean);
inline constexpr KernelRef vector_norm_kernel = FACULA_BY_ISA(vector_norm);
inline constexpr KernelRef min_dim_kernel = FACULA_BY_ISA(min_dim);
inline constexpr KernelRef max_dim_kernel = FACULA_BY_ISA(max_dim);
inline constexpr KernelRef argmin_kernel = FACULA_BY_ISA(argmin);
inline constexpr KernelRef argmax_kernel = FACULA_BY_ISA(argmax);

}  // namespace facula::cpu
