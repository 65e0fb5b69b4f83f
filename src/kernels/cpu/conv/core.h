// Convolution on raw pointers, up to three spatial dimensions. Results depend on the shape and the
// instruction set only, never on the number of threads.
#pragma once
#include <cstdint>

#include "core/complex.h"
#include "core/half.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// The geometry of a convolution; with fewer than three spatial dimensions the leading ones are of
// size, kernel, stride and dilation 1 and padding 0. Channels count all groups. `output` is what
// the other fields give, (input + 2 padding - dilation (kernel - 1) - 1) / stride + 1; for a
// transposed convolution `input` is the size of its result, output_padding included.
struct ConvShape {
  int64_t batch, groups, in_channels, out_channels;
  int64_t input[3], output[3], kernel[3];
  int64_t stride[3], padding[3], dilation[3];
};

// A tensor in the order batch, channel, depth, height, width (weights: output channel, input
// channel of the group, kernel), any strides, counted in elements.
template <class T>
struct ConvTensor {
  T* data;
  int64_t strides[5];
};

namespace FACULA_ISA {

// Where a kernel of one element leaves input elements out, the others as an image of their own.
template <class T>
ConvShape without_stride(ConvShape s, ConvTensor<T>& input) {
  for (int d = 0; d < 3; ++d) {
    if (s.kernel[d] != 1 || s.padding[d] != 0 || s.stride[d] == 1) continue;
    input.strides[d + 2] *= s.stride[d];
    s.input[d] = s.output[d];
    s.stride[d] = 1;
  }
  return s;
}

// All four are instantiated for float, double, Half, BFloat16, complex64, complex128 and all
// integers; they throw facula::Error when scratch memory runs out. Results are overwritten and
// must not overlap arguments. A null bias is none.

// output = input * weight + bias[out_channels].
template <class T>
void conv_forward(const ConvShape& shape, ConvTensor<const T> input, ConvTensor<const T> weight,
                  const T* bias, ConvTensor<T> output);

// The gradient by the input; with bias[in_channels], also the transposed convolution of
// `grad_output`.
template <class T>
void conv_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                         ConvTensor<const T> weight, const T* bias, ConvTensor<T> grad_input);

template <class T>
void conv_backward_weight(const ConvShape& shape, ConvTensor<const T> grad_output,
                          ConvTensor<const T> input, ConvTensor<T> grad_weight);

// grad_bias[out_channels], contiguous.
template <class T>
void conv_backward_bias(const ConvShape& shape, ConvTensor<const T> grad_output, T* grad_bias);

}  // namespace FACULA_ISA
}  // namespace facula::cpu
