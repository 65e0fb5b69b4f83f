// Batching rules of views and repetitions.
#include "ops/shape/batch.h"

#include "dispatch/batch.h"
#include "ops/batch_tools.h"

namespace facula::batch {

void squeeze(Batch& b) {
  const Tensor& t = b.tensor(0);
  IntVec dims;
  for (int64_t d = 1; d < t.dim(); ++d)
    if (t.size(d) == 1) dims.push_back(d);
  b.set_result(0, dims.empty() ? ops::alias(t) : ops::squeeze(t, IntList(dims)));
}

void repeat(Batch& b) {
  const int at = b.arg("repeats");
  IntVec times(b.value(at).as_ints());
  b.set(0, padded(b.tensor(0), static_cast<int64_t>(times.size())));
  times.insert(0, 1);
  b.set(at, std::move(times));
  b.run();
}

void expand(Batch& b) {
  const int at = b.arg("size");
  IntVec wanted(b.value(at).as_ints());
  // Sizes are lined up from the last: the batch dimension must stay first.
  b.set(0, padded(b.tensor(0), static_cast<int64_t>(wanted.size())));
  wanted.insert(0, b.size());
  b.set(at, std::move(wanted));
  b.run();
}

}  // namespace facula::batch
