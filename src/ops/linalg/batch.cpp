// Batching rules of linear algebra.
#include "ops/linalg/batch.h"

#include <algorithm>

#include "ops/batch_tools.h"

namespace facula::batch {

void matrices(Batch& b) {
  for (int i = 0; i < b.info().args; ++i) b.expand(i);
  b.run();
}

void systems(Batch& b) {
  const Tensor A = with_batch(b, 0), B = with_batch(b, 1);
  const int64_t a_rank = b.rank(0), b_rank = b.rank(1);
  const IntSpan rows = A.sizes().first(static_cast<size_t>(A.dim() - 1));
  const bool vectors = b_rank == 1 || (b_rank == a_rank - 1 && std::ranges::equal(B.sizes(), rows));
  if (vectors) {
    // One vector for all matrices of a sample becomes one for each.
    b.set(1, ops::expand(padded(B, a_rank - 1), IntVec(rows)));
  } else {
    const int64_t rank = std::max(a_rank, b_rank);
    b.set(0, padded(A, rank));
    b.set(1, padded(B, rank));
  }
  b.run();
}

void factored_systems(Batch& b) {
  const int64_t rank = std::max(b.rank(0), b.rank(2));
  for (int i = 0; i < 3; ++i) b.set(i, padded(with_batch(b, i), i == 1 ? rank - 1 : rank));
  b.run();
}

void least_squares(Batch& b) {
  matrices(b);
  for (int k = 1; k < b.info().results; ++k) {
    const Tensor& r = b.result(k).as_tensor();
    if (r.dim() == 1 && r.numel() == 0) b.set_result(k, ops::new_empty(r, IntVec{b.size(), 0}));
  }
}

}  // namespace facula::batch
