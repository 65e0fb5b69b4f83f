// Convolutions with the channels innermost, by im2col: products of unfolded positions and packed
// weights.
#pragma once
#include <type_traits>

#include "kernels/cpu/conv/core.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
inline constexpr bool has_im2col = std::is_same_v<T, float> || std::is_same_v<T, BFloat16>;

// Types: float, and BFloat16 where the processor multiplies pairs of them; weight gradients of
// BFloat16 alone. Operands with another dimension innermost are copied.
template <class T>
void im2col_forward(const ConvShape& shape, const ConvTensor<const T>& input,
                    const ConvTensor<const T>& weight, const T* bias, const ConvTensor<T>& output);
template <class T>
void im2col_backward_input(const ConvShape& shape, const ConvTensor<const T>& grad_output,
                           const ConvTensor<const T>& weight, const T* bias,
                           const ConvTensor<T>& grad_input);
template <class T>
void im2col_backward_weight(const ConvShape& shape, const ConvTensor<const T>& grad_output,
                            const ConvTensor<const T>& input, const ConvTensor<T>& grad_weight);

}  // namespace facula::cpu::FACULA_ISA
