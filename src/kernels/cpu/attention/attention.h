// Attention by blocks: the matrix of scores is never formed.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// query [batch, heads, length, width], key and value [batch, heads of theirs, other length, width],
// the innermost dimension contiguous; heads of keys divide those of queries. A mask is added to the
// scores: float32 or query's dtype, broadcast to [batch, heads, length, other length]. `logsumexp`
// [batch, heads, length] in float32, for double in double.
FACULA_PER_ISA(void flash_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    double dropout_p, bool causal, const Tensor& mask,
                                    std::optional<double> scale, const Tensor& out,
                                    const Tensor& logsumexp);
               void flash_attention_backward(const Tensor& grad, const Tensor& query,
                                             const Tensor& key, const Tensor& value,
                                             const Tensor& out, const Tensor& logsumexp,
                                             double dropout_p, bool causal, const Tensor& mask,
                                             std::optional<double> scale, const Tensor& grad_query,
                                             const Tensor& grad_key, const Tensor& grad_value);)

inline constexpr KernelRef flash_attention_kernel = FACULA_BY_ISA(flash_attention);
inline constexpr KernelRef flash_attention_backward_kernel =
    FACULA_BY_ISA(flash_attention_backward);

// Widest heads that the blocks are made for.
inline constexpr int64_t widest_attention_head = 192;

}  // namespace facula::cpu
