// Batching rules of random numbers, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Random numbers by rows of a tensor.
void draw_rows(Batch& b);

}  // namespace facula::batch
