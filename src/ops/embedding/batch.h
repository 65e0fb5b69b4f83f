// Batching rules of embeddings, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

void embedding(Batch& b);
void embedding_backward(Batch& b);

}  // namespace facula::batch
