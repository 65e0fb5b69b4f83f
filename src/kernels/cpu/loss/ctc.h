// Connectionist temporal classification: log likelihoods of label sequences by dynamic programming.
// The code gathers and scatters, so it is compiled once.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace facula::cpu {

// Where each sample's labels are in one list, and how many steps and labels it has.
struct CtcBatch {
  std::vector<int64_t> labels, starts, label_counts, steps;
  int64_t blank = 0;
  int64_t count() const { return static_cast<int64_t>(steps.size()); }
  int64_t longest() const;
};

// log_probs (T, N, C) gives `loss` (N), the negative log likelihoods, and log_alpha (N, T, 2 S +
// 1): of each step and each place in the labels with blanks between, the log likelihood of getting
// there.
void ctc_loss(const Tensor& log_probs, const CtcBatch& batch, const Tensor& loss,
              const Tensor& log_alpha);
// Gradient by log_probs of the losses, times `grad` (N).
void ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const CtcBatch& batch,
                       const Tensor& loss, const Tensor& log_alpha, bool zero_infinity,
                       const Tensor& out);

}  // namespace facula::cpu
