// Batching rules of convolutions, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

void convolution(Batch& b);
void convolution_backward(Batch& b);

}  // namespace facula::batch
