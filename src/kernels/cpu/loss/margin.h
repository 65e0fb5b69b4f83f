// Margin losses of classification: self is [samples, classes] or one vector of classes, targets are
// class numbers. The code gathers and scatters, so it is compiled once.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// One target for each sample.
void multi_margin_loss(const Tensor& self, const Tensor& target, int64_t p, double margin,
                       const Tensor& weight, int64_t reduction, const Tensor& out);
void multi_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                int64_t p, double margin, const Tensor& weight, int64_t reduction,
                                const Tensor& out);

// Up to `classes` targets for each sample, ended by -1; is_target marks them, one number each
// class.
void multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction,
                            const Tensor& out, const Tensor& is_target);
void multilabel_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                     int64_t reduction, const Tensor& is_target, const Tensor& out);

}  // namespace facula::cpu
