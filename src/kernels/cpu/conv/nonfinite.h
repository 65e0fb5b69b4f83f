// What zeros times infinities leave in convolutions and their gradients.
#pragma once
#include "kernels/cpu/conv/core.h"

namespace facula::cpu {

// The fast kernels walk over gaps between rows, where the gradient by the result is zero and the
// input is not: an infinity or NaN there makes NaN of sums that it has no part in. Sums that are
// NaN although the gradient is finite are taken again, position by position. For float, double,
// Half and BFloat16.
template <class T>
void recompute_nonfinite_weight_gradient(const ConvShape& shape,
                                         const ConvTensor<const T>& grad_output,
                                         const ConvTensor<const T>& input,
                                         const ConvTensor<T>& grad_weight);

// The fast kernels multiply the zeros around an image, too: an infinite or NaN weight makes NaN of
// results whose tap lies outside. Those are taken again without such taps. A null bias is none.
template <class T>
void recompute_nonfinite_output(const ConvShape& shape, const ConvTensor<const T>& input,
                                const ConvTensor<const T>& weight, const T* bias,
                                const ConvTensor<T>& output);

// The same for the gradient by the input, or a transposed convolution of `grad_output`.
template <class T>
void recompute_nonfinite_input_gradient(const ConvShape& shape,
                                        const ConvTensor<const T>& grad_output,
                                        const ConvTensor<const T>& weight, const T* bias,
                                        const ConvTensor<T>& grad_input);

}  // namespace facula::cpu
