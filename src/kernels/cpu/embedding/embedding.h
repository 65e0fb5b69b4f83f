// Rows of a table by number, and the sum of gradients back into the table.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// out[i, :] = weight[indices[i], :]. IndexError for a number outside the table.
void embedding(const Tensor& weight, const Tensor& indices, const Tensor& out);
// out = 0, then out[indices[i], :] += grad[i, :], but for the row `padding`.
void embedding_dense_backward(const Tensor& grad, const Tensor& indices, int64_t rows,
                              int64_t padding, bool scale_by_frequency, const Tensor& out);
// Scales the rows that indices name down to `max_norm`, in place.
void embedding_renorm(const Tensor& weight, const Tensor& indices, double max_norm,
                      double norm_type);

}  // namespace facula::cpu
