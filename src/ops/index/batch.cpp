// Batching rules of indexing, and of writing through indices.
#include "ops/index/batch.h"

#include <algorithm>

#include "dispatch/batch_families.h"
#include "ops/batch_tools.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"

namespace facula::batch {
namespace {

// Indices of a sample, as indices of the batch: in front of them one that counts samples.
struct Indices {
  std::vector<Tensor> list;
  int64_t rank = 0;    // of the indices together, for a sample
  int64_t before = 0;  // dimensions before the first that is indexed
  int64_t used = 0;
  bool adjacent = true;
  bool has_mask = false;
};

Indices indices_of(Batch& b, int arg) {
  Indices x;
  const auto given = b.value(arg).as_tensors();
  const int64_t extra = b.batched(arg) ? 1 : 0;
  bool ended = false;
  for (const Tensor& t : given) {
    if (!t.defined()) {
      ended = x.used > 0;
      if (!ended) ++x.before;
      continue;
    }
    x.adjacent &= !ended;
    ++x.used;
    x.rank = std::max(x.rank, t.dim() - extra);
    x.has_mask |= t.dtype() == DType::Bool || t.dtype() == DType::UInt8;
  }
  IntVec ones(static_cast<size_t>(x.rank) + 1, 1);
  ones[0] = b.size();
  x.list.push_back(ops::reshape(ops::arange(b.size(), DType::Int64), ones));
  for (const Tensor& t : given) x.list.push_back(t.defined() && extra ? padded(t, x.rank) : t);
  return x;
}

// Behind the batch dimension, the order of a sample's result (dimensions before the indexed ones,
// those of the indices, the rest) out of the order of the batch's (indices first); or back.
Tensor reordered(const Tensor& t, const Indices& x, bool to_sample) {
  if (!x.adjacent || x.before == 0) return t;
  const int64_t first = to_sample ? x.rank : x.before, second = to_sample ? x.before : x.rank;
  IntVec order{0};
  for (int64_t d = 0; d < second; ++d) order.push_back(1 + first + d);
  for (int64_t d = 0; d < first; ++d) order.push_back(1 + d);
  for (int64_t d = 1 + first + second; d < t.dim(); ++d) order.push_back(d);
  return ops::permute(t, order);
}

// An index along one dimension, spread over the shape of what it indexes.
Tensor spread_index(const Tensor& index, const Tensor& like, int64_t dim) {
  IntVec line(like.sizes().size(), 1);
  line[0] = index.size(0);
  line[static_cast<size_t>(dim)] = index.dim() > 1 ? index.size(1) : 1;
  IntVec sizes(like.sizes());
  sizes[static_cast<size_t>(dim)] = line[static_cast<size_t>(dim)];
  return ops::expand(ops::reshape(index, line), sizes);
}

Tensor not_negative(const Tensor& index, int64_t n) {
  return ops::where(ops::lt(index, 0), ops::add(index, n), index);
}

}  // namespace

void index(Batch& b) {
  const Indices x = indices_of(b, 1);
  if (x.has_mask) return b.loop();
  b.set_result(0, reordered(ops::index(with_batch(b, 0), x.list), x, true));
}

void index_put(Batch& b) {
  const Indices x = indices_of(b, 1);
  if (x.has_mask || x.used == 0) return b.loop();
  const Tensor self = with_batch(b, 0);
  const int64_t rank = x.rank + self.dim() - 1 - x.used;
  b.set(2, reordered(padded(with_batch(b, 2), rank), x, false));
  b.set(1, x.list);
  b.run();
}

void index_select(Batch& b) {
  if (!b.batched(2)) return dims_of_self(b);
  if (b.rank(0) == 0) return b.loop();
  const int64_t dim = wrap_dim(b.value(1).i, b.rank(0)) + 1;
  const Tensor self = with_batch(b, 0);
  b.set_result(0, ops::gather(self, dim, spread_index(b.tensor(2), self, dim)));
}

namespace {

// Slices of source into self. Where each sample has indices of its own, by
// scatter(self, dim, index, source), which says the same of elements.
template <class F>
void write_slices(Batch& b, F scatter) {
  const int source = b.arg("source");
  if (b.rank(0) == 0) return b.loop();
  const int64_t dim = wrap_dim(b.value(1).i, b.rank(0)) + 1;
  const Tensor self = with_batch(b, 0), from = with_batch(b, source);
  if (!b.batched(2)) {
    b.set(1, dim);
    return b.run();
  }
  if (from.dim() != self.dim()) return b.loop();
  b.set_result(0, scatter(self, dim, spread_index(b.tensor(2), from, dim), from));
}

}  // namespace

void index_add(Batch& b) {
  write_slices(b, [&b](const Tensor& self, int64_t dim, const Tensor& at, const Tensor& from) {
    const Scalar alpha = b.value(b.arg("alpha")).as_scalar();
    return ops::scatter_add(self, dim, at, ops::mul(from, alpha));
  });
}

void index_copy(Batch& b) {
  write_slices(b, [](const Tensor& self, int64_t dim, const Tensor& at, const Tensor& from) {
    return ops::scatter(self, dim, at, from);
  });
}

void index_reduce(Batch& b) {
  write_slices(b, [&b](const Tensor& self, int64_t dim, const Tensor& at, const Tensor& from) {
    return ops::scatter_reduce(self, dim, at, from, b.value(b.arg("reduce")).as_str(),
                               b.value(b.arg("include_self")).b);
  });
}

void index_fill_tensor(Batch& b) { b.loop(); }

void take(Batch& b) {
  const Tensor self = flat_samples(with_batch(b, 0)), index = with_batch(b, 1);
  const Tensor at = not_negative(flat_samples(index), self.size(1));
  b.set_result(0, ops::reshape(ops::gather(self, 1, at), index.sizes()));
}

void put(Batch& b) {
  const Tensor whole = with_batch(b, 0), self = flat_samples(whole);
  const Tensor at = not_negative(flat_samples(with_batch(b, 1)), self.size(1));
  const Tensor source = flat_samples(with_batch(b, 2));
  const Tensor r =
      b.value(3).b ? ops::scatter_add(self, 1, at, source) : ops::scatter(self, 1, at, source);
  b.set_result(0, ops::reshape(r, whole.sizes()));
}

}  // namespace facula::batch
