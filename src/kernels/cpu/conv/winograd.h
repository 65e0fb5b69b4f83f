// Convolutions of 3x3 kernels by Winograd's minimal filtering F(2x2, 3x3): four results of a plane
// take 16 products instead of 36.
//
// S. Winograd, Arithmetic Complexity of Computations (1980); A. Lavin and S. Gray, Fast Algorithms
// for Convolutional Neural Networks (2015). The transforms add to the rounding error; sums a
// ninth as long, taken 16 terms at a time, make up for it (test_kernel_accuracy.py). An infinity,
// or a sum of inputs that overflows, spoils its whole tile: such images are done again directly.
#pragma once
#include "kernels/cpu/conv/core.h"

namespace facula::cpu::FACULA_ISA {

// For shapes that winograd_applies() to. The first two set broken[image], which was 0, where
// another route must do an image again.
void winograd_forward(const ConvShape& shape, const ConvTensor<const float>& input,
                      const ConvTensor<const float>& weight, const float* bias,
                      const ConvTensor<float>& output, uint8_t* broken);
void winograd_backward_input(const ConvShape& shape, const ConvTensor<const float>& grad_output,
                             const ConvTensor<const float>& weight, const float* bias,
                             const ConvTensor<float>& grad_input, uint8_t* broken);

// False where the gradient turned out not to be finite: another route must do it again.
bool winograd_backward_weight(const ConvShape& shape, const ConvTensor<const float>& grad_output,
                              const ConvTensor<const float>& input,
                              const ConvTensor<float>& grad_weight);

}  // namespace facula::cpu::FACULA_ISA
