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
// index_add and its like.
void index_write(Batch& b);
void take(Batch& b);
void put(Batch& b);

}  // namespace facula::batch
