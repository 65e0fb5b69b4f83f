// Batching rules of reductions to a scalar, of arguments of extrema, and of searches.
#include "ops/reduce/batch.h"

#include "dispatch/batch_families.h"
#include "ops/batch_tools.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"

namespace facula::batch {

void whole_max(Batch& b) { b.set_result(0, ops::amax(flat_samples(b.tensor(0)), {1})); }
void whole_min(Batch& b) { b.set_result(0, ops::amin(flat_samples(b.tensor(0)), {1})); }
void whole_prod(Batch& b) {
  const Value& given = b.value(b.arg("dtype"));
  const auto dtype = given.is_none() ? std::nullopt : std::optional(given.dtype);
  b.set_result(0, ops::prod(flat_samples(b.tensor(0)), 1, false, dtype));
}

void arg_reduction(Batch& b) {
  const int dim = b.arg("dim"), keep = b.arg("keepdim");
  if (!b.value(dim).is_none()) return reduction(b);
  const int64_t rank = b.rank(0);
  b.set(0, ops::reshape(b.tensor(0), {b.size(), -1}));
  b.set(dim, 1);
  b.run();
  if (!b.value(keep).b || rank == 0) return;
  IntVec ones(static_cast<size_t>(rank) + 1, 1);
  ones[0] = b.size();
  if (b.result(0).as_tensor().dim() != rank + 1)
    for (int k = 0; k < b.info().results; ++k)
      b.set_result(k, ops::reshape(b.result(k).as_tensor(), ones));
}

void search(Batch& b) {
  const int sorter = b.arg("sorter");
  if (!b.value(1).is_tensor()) return b.loop();
  const bool sorted_batched = b.batched(0) || (sorter >= 0 && b.batched(sorter));
  if (b.rank(0) == 1 && !sorted_batched) return b.run();
  const bool line = b.rank(0) == 1;
  for (int i = 0; i < b.info().args; ++i) b.expand(i);
  const IntVec sizes(b.tensor(1).sizes());
  if (line) b.set(1, flat_samples(b.tensor(1)));
  b.run();
  if (line) b.set_result(0, ops::reshape(b.result(0).as_tensor(), sizes));
}

}  // namespace facula::batch
