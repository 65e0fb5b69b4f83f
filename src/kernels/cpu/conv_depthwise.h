// Depthwise convolution: with the channels innermost in memory a loop over vectors of channels,
// else plane by plane (conv_depthwise_planes.cpp).
#pragma once
#include "kernels/cpu/conv_core.h"

namespace facula::cpu::FACULA_ISA {

// Each is false, and does nothing, where the problem is another: more than one channel in a group,
// or so few channels, elsewhere than innermost, that copying them there would not pay. Types: float
// and double.
template <class T>
bool depthwise_forward(const ConvShape& shape, ConvTensor<const T> input,
                       ConvTensor<const T> weight, const T* bias, ConvTensor<T> output);
template <class T>
bool depthwise_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                              ConvTensor<const T> weight, const T* bias, ConvTensor<T> grad_input);
template <class T>
bool depthwise_backward_weight(const ConvShape& shape, ConvTensor<const T> grad_output,
                               ConvTensor<const T> input, ConvTensor<T> grad_weight);

// The same for planes whose rows are dense, of stride 1; false where the problem is another.
template <class T>
bool depthwise_planes_forward(const ConvShape& shape, ConvTensor<const T> input,
                              ConvTensor<const T> weight, const T* bias, ConvTensor<T> output);
template <class T>
bool depthwise_planes_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                                     ConvTensor<const T> weight, const T* bias,
                                     ConvTensor<T> grad_input);
template <class T>
bool depthwise_planes_backward_weight(const ConvShape& shape, ConvTensor<const T> grad_output,
                                      ConvTensor<const T> input, ConvTensor<T> grad_weight);

}  // namespace facula::cpu::FACULA_ISA
