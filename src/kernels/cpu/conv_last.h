// Convolutions with the channels innermost, as products of unfolded positions and packed weights.
#pragma once
#include <type_traits>

#include "kernels/cpu/conv_core.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
inline constexpr bool kUnfolds = std::is_same_v<T, float> || std::is_same_v<T, BFloat16>;

// Each is false, and does nothing, where another way is as good or the only one. Types: float, and
// BFloat16 where the processor multiplies pairs of them; with any strides, but float with other
// layouts than channels-last only where a copy pays.
template <class T>
bool unfolded_forward(const ConvShape& shape, const ConvTensor<const T>& input,
                      const ConvTensor<const T>& weight, const T* bias,
                      const ConvTensor<T>& output);
template <class T>
bool unfolded_backward_input(const ConvShape& shape, const ConvTensor<const T>& grad_output,
                             const ConvTensor<const T>& weight, const T* bias,
                             const ConvTensor<T>& grad_input);
template <class T>
bool unfolded_backward_weight(const ConvShape& shape, const ConvTensor<const T>& grad_output,
                              const ConvTensor<const T>& input, const ConvTensor<T>& grad_weight);

}  // namespace facula::cpu::FACULA_ISA
