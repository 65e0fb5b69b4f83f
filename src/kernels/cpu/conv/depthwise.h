// Depthwise convolution: with the channels innermost in memory a loop over vectors of channels,
// else plane by plane (depthwise_planes.cpp).
#pragma once
#include "kernels/cpu/conv/core.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
inline constexpr bool has_depthwise = std::is_same_v<T, float> || std::is_same_v<T, double>;

inline constexpr int64_t max_depthwise_taps = 4096;

// More than one group of one channel each, and at most max_depthwise_taps taps. Types: float and
// double.
template <class T>
void depthwise_forward(const ConvShape& shape, ConvTensor<const T> input,
                       ConvTensor<const T> weight, const T* bias, ConvTensor<T> output);
template <class T>
void depthwise_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                              ConvTensor<const T> weight, const T* bias, ConvTensor<T> grad_input);
template <class T>
void depthwise_backward_weight(const ConvShape& shape, ConvTensor<const T> grad_output,
                               ConvTensor<const T> input, ConvTensor<T> grad_weight);

// The same for planes whose rows are dense, of stride 1 and at most 256 taps.
template <class T>
void depthwise_planes_forward(const ConvShape& shape, ConvTensor<const T> input,
                              ConvTensor<const T> weight, const T* bias, ConvTensor<T> output);
template <class T>
void depthwise_planes_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                                     ConvTensor<const T> weight, const T* bias,
                                     ConvTensor<T> grad_input);
template <class T>
void depthwise_planes_backward_weight(const ConvShape& shape, ConvTensor<const T> grad_output,
                                      ConvTensor<const T> input, ConvTensor<T> grad_weight);

}  // namespace facula::cpu::FACULA_ISA
