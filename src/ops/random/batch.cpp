// Batching rules of random numbers.
#include "ops/random/batch.h"

#include "ops/batch_tools.h"

namespace facula::batch {

void draw_rows(Batch& b) {
  if (b.rank(0) < 2) return b.run();
  b.set(0, folded(b.tensor(0)));
  b.run();
  b.set_result(0, unfolded(b.result(0).as_tensor(), b.size()));
}

}  // namespace facula::batch
