// Negative log likelihood of class numbers: input [outer, classes, inner], one target each.
// The code gathers and scatters, so it is compiled once.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Sums into `output` (or one loss each for reduction 0) and the weights that were met.
void nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
              int64_t ignore_index, const Tensor& output, const Tensor& total_weight);
void nll_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction, int64_t ignore_index,
                       const Tensor& total_weight, const Tensor& out);

}  // namespace facula::cpu
