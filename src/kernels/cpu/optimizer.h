// Optimizer steps over lists of tensors: one pass over each parameter and its state.
#pragma once
#include <span>

#include "core/tensor.h"
#include "dispatch/typed.h"
#include "kernels/cpu/isa.h"

namespace facula::cpu {

using TensorSpan = std::span<const Tensor>;

struct AdamStep {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;  // decoupled: weight decay as in AdamW
  const double* grad_scale;           // gradients are divided by it; null for none
};
struct SgdStep {
  double lr, weight_decay, momentum, dampening;
  bool nesterov, maximize, first;
  const double* grad_scale;
};
struct AdagradStep {
  double lr, lr_decay, weight_decay, eps;
  bool maximize;
  const double* grad_scale;
};

// Tensors of a parameter: itself, its gradient, its state (undefined ones are not used). `count` is
// the number of the step. All are of one dtype and shape.
FACULA_PER_ISA(
  void adam_step(const AdamStep& s, double count, std::span<const Tensor> tensors);
  void sgd_step(const SgdStep& s, std::span<const Tensor> tensors);
  void adagrad_step(const AdagradStep& s, double count, std::span<const Tensor> tensors);
)

}  // namespace facula::cpu
