// Batching rules of embeddings: tables of samples stand one below the other.
#include "ops/embedding/batch.h"

#include "ops/batch_tools.h"
#include "ops/create/copy.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/embedding/embedding.h"

namespace facula::batch {

namespace {

Tensor shifted_indices(Batch& b, const Tensor& indices, int64_t rows) {
  IntVec ones(indices.sizes().size(), 1);
  ones[0] = b.size();
  const Tensor starts = ops::mul(ops::arange(b.size(), indices.dtype()), rows);
  return ops::add(indices, ops::reshape(starts, ones));
}

}  // namespace

void embedding(Batch& b) {
  if (!b.batched(0)) return b.run();
  const bool plain = b.value(b.arg("padding_idx")).i < 0 && !b.value(b.arg("scale_grad_by_freq")).b;
  if (!plain) return b.loop();
  const Tensor& table = b.tensor(0);
  const Tensor at = shifted_indices(b, with_batch(b, 1), table.size(1));
  b.set_result(0, ops::embedding(folded(table), at));
}

void embedding_backward(Batch& b) {
  const int64_t rows = b.value(b.arg("num_weights")).i, pad = b.value(b.arg("padding_idx")).i;
  const Tensor grad = with_batch(b, 0);
  const Tensor at = shifted_indices(b, with_batch(b, 1), rows);
  const Tensor joined_rows = ops::embedding_dense_backward(grad, at, rows * b.size(), -1,
                                                           b.value(b.arg("scale_grad_by_freq")).b);
  const Tensor r = unfolded(joined_rows, b.size());
  if (pad >= 0) ops::zero_(ops::select(r, 1, pad));
  b.set_result(0, r);
}

}  // namespace facula::batch
