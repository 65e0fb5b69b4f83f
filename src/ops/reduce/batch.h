// Batching rules of reductions, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// One tensor reduced to a scalar: the operator `NAME.dim`, or another that says the same.
void whole(Batch& b);
// argmax and its like: `dim` may be None, and then counts through all elements.
void arg_reduction(Batch& b);
void search(Batch& b);

}  // namespace facula::batch
