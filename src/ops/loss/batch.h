// Batching rules of losses, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Losses of two tensors with a `reduction`, and their gradients.
void loss(Batch& b);
void loss_backward(Batch& b);
void nll(Batch& b);
void nll_backward(Batch& b);
// _ctc_loss with lengths as tensors: the loop's call for each sample, whose results have one shape
// as long as the samples' longest targets are equally long.
void ctc_loss_by_tensors(Batch& b);

}  // namespace facula::batch
