// Batching rules of views and repetitions, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Only dimensions of the sample are squeezed.
void squeeze(Batch& b);
void repeat(Batch& b);
void expand(Batch& b);

}  // namespace facula::batch
