// Batching rules of reductions, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// One tensor reduced to a scalar: by the operator that reduces a dimension.
void whole_max(Batch& b);
void whole_min(Batch& b);
void whole_prod(Batch& b);
// argmax and its like: `dim` may be None, and then counts through all elements.
void arg_reduction(Batch& b);
void search(Batch& b);

}  // namespace facula::batch
