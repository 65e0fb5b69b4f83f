// Batching rules of products.
#include "ops/matmul/batch.h"

#include "ops/batch_tools.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula::batch {
namespace {

// Whether argument `at` is one matrix for all samples, of a layout that cannot be expanded.
bool is_one_sparse_matrix(const Batch& b, int at) {
  return !b.batched(at) && b.tensor(at)->layout != Layout::Strided && b.tensor(at).dim() == 2;
}

// The samples' columns, or vectors, side by side as those of one matrix.
Tensor sparse_times_samples(const Tensor& sparse, const Tensor& y) {
  if (y.dim() == 2) return ops::t(ops::mm(sparse, ops::t(y)));
  const int64_t samples = y.size(0), columns = y.size(2);
  const Tensor together = ops::reshape(ops::transpose(y, 0, 1), {y.size(1), samples * columns});
  const Tensor r = ops::mm(sparse, together);
  return ops::transpose(ops::reshape(r, {r.size(0), samples, columns}), 0, 1);
}
Tensor samples_times_sparse(const Tensor& x, const Tensor& sparse) {
  if (x.dim() == 2) return ops::mm(x, sparse);
  const Tensor r = ops::mm(ops::reshape(x, {x.size(0) * x.size(1), x.size(2)}), sparse);
  return ops::reshape(r, {x.size(0), x.size(1), r.size(1)});
}

// The product that the two arguments from `at` on name, whatever their ranks.
Tensor product(Batch& b, int at) {
  Tensor x = b.tensor(at), y = b.tensor(at + 1);
  const int64_t x_rank = b.rank(at), y_rank = b.rank(at + 1);
  if (is_one_sparse_matrix(b, at) && y_rank <= 2) return sparse_times_samples(x, y);
  if (is_one_sparse_matrix(b, at + 1) && x_rank <= 2) return samples_times_sparse(x, y);
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
