// Batching rules of normalisations, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

void batch_norm(Batch& b);
void batch_norm_backward(Batch& b);
void group_norm(Batch& b);
void group_norm_backward(Batch& b);
// Norms over the last dimensions, with a scale (and a shift) of their own for each sample.
void layer_norm(Batch& b);
void layer_norm_backward(Batch& b);

}  // namespace facula::batch
