// What zeros times infinities leave in the gradient of a convolution's weights.
#pragma once
#include "kernels/cpu/conv_core.h"

namespace facula::cpu {

// The fast kernels walk over gaps between rows, where the gradient by the result is zero and the
// input is not: an infinity or NaN there makes NaN of sums that it has no part in. Sums that are
// NaN although the gradient is finite are taken again, position by position. For float, double,
// Half and BFloat16.
template <class T>
void repair_weight_gradient(const ConvShape& shape, const ConvTensor<const T>& grad_output,
                            const ConvTensor<const T>& input, const ConvTensor<T>& grad_weight);

}  // namespace facula::cpu
