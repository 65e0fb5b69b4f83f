// Batching rules of products.
#include "ops/matmul/batch.h"

#include "ops/batch_tools.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/matmul/matmul.h"

namespace facula::batch {
namespace {

// The product that the two arguments from `at` on name, whatever their ranks.
Tensor product(Batch& b, int at) {
  Tensor x = b.tensor(at), y = b.tensor(at + 1);
  const int64_t x_rank = b.rank(at), y_rank = b.rank(at + 1);
  if (x_rank == 1) x = ops::unsqueeze(x, -2);
  if (y_rank == 1) y = ops::unsqueeze(y, -1);
  Tensor r = ops::matmul(x, y);
  if (y_rank == 1) r = ops::squeeze(r, -1);
  if (x_rank == 1) r = ops::squeeze(r, y_rank == 1 ? -1 : -2);
  return r;
}

}  // namespace

void matmul(Batch& b) { b.set_result(0, product(b, 0)); }

void add_matmul(Batch& b) {
  const Scalar beta = b.value(b.arg("beta")).as_scalar(),
               alpha = b.value(b.arg("alpha")).as_scalar();
  Tensor r = product(b, 1);
  if (!alpha.equals(1)) r = ops::mul(r, alpha);
  if (beta.equals(0)) {
    if (b.batched(1) || b.batched(2)) return b.set_result(0, r);
    IntVec sizes(r.sizes());
    sizes.insert(0, b.size());
    return b.set_result(0, ops::expand(r, sizes));
  }
  const int64_t rank = b.batched(1) || b.batched(2) ? r.dim() - 1 : r.dim();
  const Tensor self = b.batched(0) ? padded(b.tensor(0), rank) : b.tensor(0);
  b.set_result(0, ops::add(r, beta.equals(1) ? self : ops::mul(self, beta)));
}

}  // namespace facula::batch
