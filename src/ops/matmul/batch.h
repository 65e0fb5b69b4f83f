// Batching rules of products, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Products of two matrices, batches of them, matrix and vector, two vectors.
void matmul(Batch& b);
// beta * self + alpha * (a product of the two arguments that follow): addmm, baddbmm.
void add_matmul(Batch& b);

}  // namespace facula::batch
