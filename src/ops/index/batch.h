// Batching rules of indexing, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Indexing with tensors, and writing through such indices.
void index(Batch& b);
void index_put(Batch& b);
void index_select(Batch& b);
// Of each operator that writes slices.
void index_add(Batch& b);
void index_copy(Batch& b);
void index_reduce(Batch& b);
void index_fill_tensor(Batch& b);
void take(Batch& b);
void put(Batch& b);

}  // namespace facula::batch
